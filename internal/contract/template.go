// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"errors"
	"strings"
)

// secretPrefix starts the name of a secret's placeholder. In effects it stays
// as it is, and the runner looks for "{" and this prefix.
const secretPrefix = "_secret:"

// piece is one part of a template: a text, or a placeholder.
type piece struct {
	// text is literal when name is empty.
	text string
	// name of a placeholder, without braces.
	name string
}

// secret returns the secret that a placeholder stands for.
func (p piece) secret() (string, bool) { return strings.CutPrefix(p.name, secretPrefix) }

var (
	errOpenBrace   = errors.New("has { without a name and }; write {name}, or {{ for a brace")
	errCloseBrace  = errors.New("has } without {; write }} for a brace")
	errNulLiteral  = errors.New("contains NUL")
	errQuote       = errors.New("has a quote that is not closed")
	errEscape      = errors.New("ends with a backslash")
	errLookalike   = errors.New("contains the text {_secret: that is not a placeholder")
	errNotTemplate = errors.New("has a placeholder whose name is not a name")
)

// parseTemplate takes a template apart in which {{ and }} stand for braces.
func parseTemplate(text string) ([]piece, error) {
	if strings.IndexByte(text, 0) >= 0 {
		return nil, errNulLiteral
	}
	var pieces []piece
	literal := ""
	for text != "" {
		i := strings.IndexAny(text, "{}")
		if i < 0 {
			i = len(text)
		}
		literal += text[:i]
		p, rest, err := cutBrace(text[i:])
		if err != nil {
			return nil, err
		}
		literal += p.text
		if p.name != "" {
			pieces = append(appendLiteral(pieces, literal), p)
			literal = ""
		}
		text = rest
	}
	pieces = appendLiteral(pieces, literal)
	return pieces, checkLiterals(pieces)
}

func appendLiteral(pieces []piece, text string) []piece {
	if text == "" {
		return pieces
	}
	return append(pieces, piece{text: text})
}

// cutBrace reads what the brace at the beginning of a text stands for: itself
// when it is doubled, or else a placeholder.
func cutBrace(text string) (p piece, rest string, err error) {
	switch {
	case text == "":
		return piece{}, "", nil
	case strings.HasPrefix(text, "{{") || strings.HasPrefix(text, "}}"):
		return piece{text: text[:1]}, text[2:], nil
	case text[0] == '}':
		return piece{}, "", errCloseBrace
	}
	name, rest, found := strings.Cut(text[1:], "}")
	switch {
	case !found:
		return piece{}, "", errOpenBrace
	case !isPlaceholder(name):
		return piece{}, "", errNotTemplate
	}
	return piece{name: name}, rest, nil
}

// parseBody takes the template of a body apart. Bodies are full of braces, so
// that only {name} with a well-formed name is a placeholder and every other
// brace stands for itself.
func parseBody(text string) ([]piece, error) {
	var pieces []piece
	start := 0
	for i := 0; i < len(text); i++ {
		if text[i] != '{' {
			continue
		}
		name, _, found := strings.Cut(text[i+1:], "}")
		if !found || !isPlaceholder(name) {
			continue
		}
		if i > start {
			pieces = append(pieces, piece{text: text[start:i]})
		}
		pieces = append(pieces, piece{name: name})
		i += len(name) + 1
		start = i + 1
	}
	if start < len(text) {
		pieces = append(pieces, piece{text: text[start:]})
	}
	if strings.IndexByte(text, 0) >= 0 {
		return nil, errNulLiteral
	}
	return pieces, checkLiterals(pieces)
}

// checkLiterals refuses templates whose own text could be taken for the
// placeholder of a secret.
func checkLiterals(pieces []piece) error {
	for _, p := range pieces {
		if strings.Contains(p.text, "{"+secretPrefix) {
			return errLookalike
		}
	}
	return nil
}

// isPlaceholder reports whether a text between braces names something.
func isPlaceholder(name string) bool {
	return isName(strings.TrimPrefix(name, secretPrefix))
}

// isName reports whether s is a name of an argument, default, mapping,
// conditional or secret.
func isName(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	return s != "" && len(s) <= 63 && strings.IndexByte(letters, s[0]) >= 0 && strings.Trim(s, letters+"0123456789") == ""
}

// SplitWords splits a text of the manifest's own into words, as a POSIX shell
// splits quoted words, without any expansion: blanks separate, single quotes
// keep everything, double quotes keep everything but a backslash before ", \,
// $ and `, and a backslash outside quotes keeps the next character. It is never
// given a value of an agent's.
func SplitWords(text string) ([]string, error) {
	s := splitter{text: text}
	for s.next() {
	}
	if s.err != nil {
		return nil, s.err
	}
	s.endWord()
	return s.words, nil
}

// splitter is the state of [SplitWords].
type splitter struct {
	text  string
	words []string
	word  strings.Builder
	// started says that there is a word: a pair of quotes is an empty one.
	started bool
	quote   byte
	err     error
}

func (s *splitter) endWord() {
	if s.started {
		s.words = append(s.words, s.word.String())
	}
	s.word.Reset()
	s.started = false
}

// next consumes one character and reports whether there may be more.
func (s *splitter) next() bool {
	if s.text == "" {
		if s.quote != 0 {
			s.err = errQuote
		}
		return false
	}
	c := s.text[0]
	s.text = s.text[1:]
	switch {
	case c == '\\' && s.quote != '\'':
		return s.escape()
	case s.quote != 0:
		s.quoted(c)
	case c == '\'' || c == '"':
		s.quote, s.started = c, true
	case strings.IndexByte(" \t\r\n", c) >= 0:
		s.endWord()
	default:
		s.word.WriteByte(c)
		s.started = true
	}
	return true
}

// quoted consumes a character between quotes.
func (s *splitter) quoted(c byte) {
	if c == s.quote {
		s.quote = 0
		return
	}
	s.word.WriteByte(c)
}

// escape consumes the character after a backslash.
func (s *splitter) escape() bool {
	if s.text == "" {
		s.err = errEscape
		return false
	}
	c := s.text[0]
	s.text = s.text[1:]
	if s.quote == '"' && strings.IndexByte("\"\\$`", c) < 0 {
		s.word.WriteByte('\\')
	}
	s.word.WriteByte(c)
	s.started = true
	return true
}
