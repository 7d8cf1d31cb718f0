// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
)

func TestPlainNetError_SaysWhatHappenedInFixedWords(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"no such name":         {&net.DNSError{Name: "private.example", IsNotFound: true}, "no such host"},
		"a dead name server":   {&net.DNSError{Name: "private.example", Server: "10.0.0.1"}, "the name server did not answer"},
		"a deadline":           {fmt.Errorf("x: %w", context.DeadlineExceeded), "timed out"},
		"a cancelled request":  {context.Canceled, "timed out"},
		"a timeout":            {&net.OpError{Op: "dial", Err: syscall.ETIMEDOUT}, "timed out"},
		"nobody there":         {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, "connection refused"},
		"a reset":              {syscall.ECONNRESET, "connection reset"},
		"no route":             {syscall.EHOSTUNREACH, "no route to the host"},
		"no network":           {syscall.ENETUNREACH, "no route to the host"},
		"an unknown authority": {x509.UnknownAuthorityError{}, "the server's certificate does not verify"},
		"another host":         {x509.HostnameError{Host: "private.example", Certificate: &x509.Certificate{}}, "the server's certificate does not verify"},
		"an old certificate":   {x509.CertificateInvalidError{Reason: x509.Expired}, "the server's certificate does not verify"},
		"anything else":        {errors.New("private.example"), "network error"},
	} {
		if got := plainNetError(tc.err).Error(); got != tc.want || strings.Contains(got, "private") {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestRefusedBy_QuotesNoErrorThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	rep := refusedBy(errors.New("quotes a value"))
	if rep.reason != ReasonEffectInvalid || strings.Contains(rep.cause.Error(), "quotes") {
		t.Errorf("%s: %v", rep.reason, rep.cause)
	}
}
