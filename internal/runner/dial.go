// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// userAgent names the runner to servers, where the effect names nothing else.
const userAgent = "assent-runner"

const (
	dialTimeout      = 10 * time.Second
	maxResponseHeads = 256 << 10
)

// Resolver looks up the addresses of a host. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// guardedDialer connects only to addresses that it has checked itself. A name
// is resolved once and the connection goes to an address of that answer, so
// that a name server cannot give one address to the check and another to the
// connection.
type guardedDialer struct {
	resolver     Resolver
	allowPrivate bool
	// dial connects to an address, never to a name.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

func newDialer(resolver Resolver, allowPrivate bool) *guardedDialer {
	d := net.Dialer{Timeout: dialTimeout}
	return &guardedDialer{resolver: resolver, allowPrivate: allowPrivate, dial: d.DialContext}
}

// DialContext resolves, checks and connects. One address that may not be
// reached refuses the name as a whole: an honest name does not point both
// inside and outside.
func (g *guardedDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, refuse(ReasonEffectInvalid, "the URL has no usable host and port")
	}
	candidates, err := g.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, a := range candidates {
		if !mayReach(a, g.allowPrivate) {
			return nil, refuse(ReasonAddressNotAllowed, "the host has an address that the effect may not reach; see allowPrivate")
		}
	}
	err = fmt.Errorf("the host has no address")
	for _, a := range candidates {
		var conn net.Conn
		if conn, err = g.dial(ctx, network, net.JoinHostPort(a.Unmap().String(), port)); err == nil {
			return conn, nil
		}
	}
	return nil, refuse(ReasonConnectFailed, "connecting: %w", plainNetError(err))
}

func (g *guardedDialer) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	found, err := g.resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, refuse(ReasonConnectFailed, "resolving the host: %w", plainNetError(err))
	}
	return found, nil
}

// client returns an HTTP client that connects through the dialer, follows no
// redirect, asks no proxy and never sends a request twice by itself.
func (g *guardedDialer) client(caBundle string) (*http.Client, error) {
	roots, err := rootsOf(caBundle)
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            g.DialContext,
			TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    dialTimeout,
			MaxResponseHeaderBytes: maxResponseHeads,
			// The digest is over the bytes of the response, not over what a
			// decompressor made of them.
			DisableCompression: true,
			// A request on a connection of its own is never repeated by the
			// transport, and neither is one over HTTP/1.
			DisableKeepAlives: true,
			Protocols:         httpOneOnly(),
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

func rootsOf(caBundle string) (*x509.CertPool, error) {
	if caBundle == "" {
		return nil, nil //nolint:nilnil // nil means the system's roots to crypto/tls.
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(caBundle)) {
		return nil, refuse(ReasonEffectInvalid, "caBundle holds no PEM certificate")
	}
	return pool, nil
}
