// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"syscall"
)

// plainNetError reduces an error of the network libraries to fixed words.
// Their texts quote host names, URLs and server certificates, which may come
// from an agent's arguments.
func plainNetError(err error) error {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return errors.New("no such host")
	case errors.As(err, &dns):
		return errors.New("the name server did not answer")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), isTimeout(err):
		return errors.New("timed out")
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("connection refused")
	case errors.Is(err, syscall.ECONNRESET):
		return errors.New("connection reset")
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return errors.New("no route to the host")
	case isCertificateError(err):
		return errors.New("the server's certificate does not verify")
	default:
		return errors.New("network error")
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

func isCertificateError(err error) bool {
	var verification *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &verification) || errors.As(err, &unknown) || errors.As(err, &hostname) || errors.As(err, &invalid)
}
