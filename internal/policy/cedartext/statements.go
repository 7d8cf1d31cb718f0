// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package cedartext

// Statements counts the policies of a text by their semicolons. Whoever parses
// the text compares: a parser that stops early must not drop a forbid.
func Statements(text string) int {
	count, depth := 0, 0
	for _, t := range Scan(text) {
		if t.Kind != KindOperator {
			continue
		}
		switch t.Text {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			depth--
		case ";":
			if depth == 0 {
				count++
			}
		}
	}
	return count
}
