// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// generator writes random documents that know the grammar and its dark corners.
// About half of them are wrong somewhere.
type generator struct {
	random *rand.Rand
	out    strings.Builder
}

func newGenerator(seed uint64) *generator {
	return &generator{random: rand.New(rand.NewPCG(seed, 8785))}
}

// document returns the next document.
func (g *generator) document() string {
	g.out.Reset()
	g.value(g.random.IntN(6))
	g.white()
	text := g.out.String()
	if g.random.IntN(3) == 0 {
		text = g.damage(text)
	}
	return text
}

func (g *generator) value(depth int) {
	g.white()
	kinds := 9
	if depth == 0 {
		kinds = 5
	}
	switch g.random.IntN(kinds) {
	case 0:
		g.out.WriteString([]string{"null", "true", "false"}[g.random.IntN(3)])
	case 1, 2:
		g.out.WriteString(g.number())
	case 3, 4:
		g.string()
	case 5, 6:
		g.container("[]", depth, func() { g.value(depth - 1) })
	default:
		g.container("{}", depth, func() {
			g.white()
			g.string()
			g.white()
			g.out.WriteByte(':')
			g.value(depth - 1)
		})
	}
	g.white()
}

func (g *generator) container(brackets string, depth int, element func()) {
	g.out.WriteByte(brackets[0])
	for i := range g.random.IntN(2 + depth) {
		if i > 0 {
			g.out.WriteByte(',')
		}
		element()
	}
	g.white()
	g.out.WriteByte(brackets[1])
}

func (g *generator) white() {
	for g.random.IntN(4) == 0 {
		g.out.WriteByte(" \t\n\r"[g.random.IntN(4)])
	}
}

// pieces are what strings are made of; rare ones are not permitted.
var pieces = []string{
	"a", "b", "aa", "0", "é", "\u0301", "\u2028", "\ufb33", "\uffee", "\ue000", "\U0001f600", "\U0001f602", "\U00010000",
	`\u0061`, `\"`, `\\`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`, `\u0000`, `\u001f`, `\u007F`, `\u2028`, `\uD83D\uDE00`,
	"\u007f", "\u0080", "<", "__proto__", "\ufffd", `\ufffd`, "\ufdcf", "\ufffc",
}

var badPieces = []string{
	`\ud800`, `\udc00`, `\ud83d\u0041`, `\uDE00\uD83D`, "\uffff", "\ufdd0", "\U0010ffff", `\uFFFE`, "\xff", "\xed\xa0\x80", "\xc0\x80",
	"\n", "\x00", `\x`, `\u12`, `\u+123`, `\U0041`, "\"",
}

func (g *generator) string() {
	g.out.WriteByte('"')
	for g.random.IntN(3) != 0 {
		if g.random.IntN(60) == 0 {
			g.out.WriteString(badPieces[g.random.IntN(len(badPieces))])
			continue
		}
		g.out.WriteString(pieces[g.random.IntN(len(pieces))])
	}
	g.out.WriteByte('"')
}

// number returns a number token, often at the edge of something.
func (g *generator) number() string {
	switch g.random.IntN(12) {
	case 0:
		return strconv.Itoa(g.random.IntN(2001) - 1000)
	case 1: // around 2^53 and beyond, where integers stop being doubles
		n := int64(1)<<(52+g.random.IntN(11)) + int64(g.random.IntN(9)) - 4
		return strconv.FormatInt(n, 10)
	case 2: // any double, in one of many spellings
		return g.spelling(math.Float64frombits(g.random.Uint64()))
	case 3: // exactly between two doubles, or just beside
		f := math.Float64frombits(g.random.Uint64())
		return g.between(f)
	case 4: // a long run of digits
		return g.digits(1+g.random.IntN(40)) + "." + g.digits(1+g.random.IntN(40))
	case 5: // digits and exponent cancel out
		zeros := g.random.IntN(820)
		return "1" + strings.Repeat("0", zeros) + "e-" + strconv.Itoa(zeros+g.random.IntN(3))
	case 6:
		return "0." + strings.Repeat("0", g.random.IntN(400)) + g.digits(1+g.random.IntN(20)) + "e" + strconv.Itoa(g.random.IntN(500))
	case 7:
		return g.digits(1+g.random.IntN(25)) + "e" + strconv.Itoa(g.random.IntN(700)-350)
	case 8:
		return []string{
			"0", "-0", "-0.0", "0e5", "1e400", "-1e400", "1e-400", "2e-324", "3e-324", "5e-324", "1e21", "1e23", "1.0",
			"1.7976931348623157e308", "1.797693134862315807e308", "9007199254740993.0", "1E+2", "10e-1", "0.000001", "1e-7",
		}[g.random.IntN(20)]
	case 9:
		return []string{"01", "+1", ".5", "1.", "1e", "0x10", "NaN", "Infinity", "--1", "1_0", "1e+", "-"}[g.random.IntN(12)]
	case 10: // integers with zeros at the end, kept or not
		return g.digits(1+g.random.IntN(20)) + strings.Repeat("0", g.random.IntN(10))
	default:
		return g.spelling(float64(g.random.IntN(1_000_000)) / 1000)
	}
}

// digits returns n digits, the first one not zero.
func (g *generator) digits(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('0' + g.random.IntN(10))
	}
	b[0] = byte('1' + g.random.IntN(9))
	return string(b)
}

// spelling writes a double in one of several ways.
func (g *generator) spelling(f float64) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		f = 0.5
	}
	switch g.random.IntN(4) {
	case 0:
		return strconv.FormatFloat(f, 'e', -1, 64)
	case 1:
		return strconv.FormatFloat(f, 'e', 16+g.random.IntN(5), 64)
	case 2:
		return strconv.FormatFloat(f, 'g', 17, 64)
	default:
		if math.Abs(f) > 1e30 || math.Abs(f) < 1e-30 {
			return strconv.FormatFloat(f, 'E', -1, 64)
		}
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
}

// between returns a decimal at or next to the middle of f and its neighbour.
func (g *generator) between(f float64) string {
	f = math.Abs(f)
	if math.IsNaN(f) || f > 1e30 || f < 1e-30 {
		f = 1 + g.random.Float64()
	}
	// The exact expansion of f and of its neighbour have at most some 150
	// digits here; their average is written with one digit more.
	low := fmt.Sprintf("%.160f", f)
	high := fmt.Sprintf("%.160f", math.Nextafter(f, math.Inf(1)))
	return average(low, high) + []string{"", "0", "1", "000000000000000001"}[g.random.IntN(4)]
}

// average returns the exact middle of two decimals with the same number of
// fraction digits.
func average(a, b string) string {
	for len(a) < len(b) {
		a = "0" + a
	}
	sum := make([]byte, len(a)+1)
	carry := 0
	for i := len(a) - 1; i >= 0; i-- {
		if a[i] == '.' {
			sum[i+1] = '.'
			continue
		}
		n := int(a[i]-'0') + int(b[i]-'0') + carry
		sum[i+1], carry = byte('0'+n%10), n/10
	}
	sum[0] = byte('0' + carry)
	half := make([]byte, 0, len(sum)+1)
	rest := 0
	for _, c := range sum {
		if c == '.' {
			half = append(half, c)
			continue
		}
		n := rest*10 + int(c-'0')
		half, rest = append(half, byte('0'+n/2)), n%2
	}
	half = append(half, byte('0'+rest*5))
	trimmed := strings.TrimLeft(string(half), "0")
	if strings.HasPrefix(trimmed, ".") {
		return "0" + trimmed
	}
	return trimmed
}

// damage changes a text somewhere.
func (g *generator) damage(text string) string {
	at := 0
	if len(text) > 0 {
		at = g.random.IntN(len(text))
	}
	switch g.random.IntN(5) {
	case 0:
		return text[:at]
	case 1:
		return text[:at] + text[min(at+1, len(text)):]
	case 2:
		return text[:at] + string(rune(g.random.IntN(256))) + text[at:]
	case 3:
		return text + []string{" ", "x", "{}", ",", "\x00", "\ufeff", "//"}[g.random.IntN(7)]
	default:
		other := g.random.IntN(len(text) + 1)
		return text[:at] + text[min(at, other):]
	}
}
