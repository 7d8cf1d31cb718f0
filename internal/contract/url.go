// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/internal/contract/scope"
)

// defaultSchemes hold for url arguments that list none.
var defaultSchemes = []string{"https"}

// normaliseURL accepts absolute URLs that every parser reads in the same way:
// scheme and host in lower case, no credentials, no fragment, no escapes that
// are incomplete, no segments that climb.
func normaliseURL(a *argument, text string) (string, refusal) {
	if why := checkText(text); why != "" {
		return "", why
	}
	u, why := parseURL(text)
	if why != "" {
		return "", why
	}
	if !slices.Contains(a.schemes, u.scheme) {
		return "", ReasonURLScheme
	}
	return u.String(), ""
}

// parsedURL is a URL whose authority has been checked.
type parsedURL struct {
	scheme string
	target scope.Target
	// authority is host and port as written, in lower case.
	authority string
	// rest is path and query, as written.
	rest string
}

func (u parsedURL) String() string { return u.scheme + "://" + u.authority + u.rest }

// parseURL takes a URL apart. net/url does most of it, but reads more than the
// other ends of a connection agree on.
func parseURL(text string) (parsedURL, refusal) {
	if !isURLText(text) {
		return parsedURL{}, ReasonInvalidURL
	}
	u, err := url.Parse(text)
	if err != nil || !isAbsolute(u) || strings.Contains(text, "#") {
		return parsedURL{}, ReasonInvalidURL
	}
	if u.User != nil {
		return parsedURL{}, ReasonURLCredentials
	}
	if !isPort(u) {
		return parsedURL{}, ReasonInvalidURL
	}
	t, why := scope.ParseHost(u.Hostname())
	if why != "" {
		return parsedURL{}, refusal(why)
	}
	path, _, _ := strings.Cut(text[strings.Index(text, "://")+len("://"):], "?")
	if hasParentSegment(path) || hasDotSegment(path) {
		return parsedURL{}, ReasonPathTraversal
	}
	return parsedURL{
		scheme:    u.Scheme,
		target:    t,
		authority: strings.ToLower(u.Host),
		rest:      text[len(u.Scheme)+len("://")+len(u.Host):],
	}, ""
}

// isAbsolute reports whether a URL has a scheme and, after two slashes, a host.
func isAbsolute(u *url.URL) bool { return u.Scheme != "" && u.Opaque == "" && u.Host != "" }

// hasDotSegment reports whether a path contains ".", plain or encoded, which
// clients remove and servers may not.
func hasDotSegment(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || strings.EqualFold(segment, "%2e") {
			return true
		}
	}
	return false
}

// isURLText reports whether text consists of characters of a URL (RFC 3986
// section 2) with complete escapes.
func isURLText(text string) bool {
	for i := range len(text) {
		c := text[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"\\^`{}|<>", c) >= 0 {
			return false
		}
		if c == '%' && (i+2 >= len(text) || !isHex(text[i+1]) || !isHex(text[i+2])) {
			return false
		}
	}
	return true
}

// isPort reports whether a URL has no port or a decimal one from 1 to 65535.
func isPort(u *url.URL) bool {
	port := u.Port()
	if port == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0 && port[0] != '0'
}

// isUnreserved reports whether a byte stands for itself everywhere in a URL
// (RFC 3986 section 2.3).
func isUnreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}

// appendEscaped writes a value for a path segment or a part of a query, so that
// none of its characters can end that part.
func appendEscaped(text []byte, value string) []byte {
	const digits = "0123456789ABCDEF"
	for i := range len(value) {
		if c := value[i]; isUnreserved(c) {
			text = append(text, c)
		} else {
			text = append(text, '%', digits[c>>4], digits[c&15])
		}
	}
	return text
}
