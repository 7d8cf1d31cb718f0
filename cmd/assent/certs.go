// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	certFile, keyFile, caFile = "tls.crt", "tls.key", "ca.crt"
	certPollFirst             = 500 * time.Millisecond
	certPollLater             = 20 * time.Second
)

// servingCert is the certificate of the webhooks and the execution endpoint.
// cert-controller makes and rotates it in a Secret. It is read from there
// rather than from a mounted volume, since kubelet takes up to a minute to
// show a Secret that changed.
type servingCert struct {
	live    client.Reader
	key     types.NamespacedName
	dir     string
	current atomic.Pointer[loadedCert]
}

type loadedCert struct {
	cert tls.Certificate
	pem  []byte
	ca   string
}

var errNoCert = errors.New("the serving certificate is not there yet")

// get is for tls.Config.
func (s *servingCert) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c := s.current.Load()
	if c == nil {
		return nil, errNoCert
	}
	return &c.cert, nil
}

// ca returns the certificate authority, PEM.
func (s *servingCert) ca() string {
	if c := s.current.Load(); c != nil {
		return c.ca
	}
	return ""
}

// ready says whether there is a certificate.
func (s *servingCert) ready() error {
	if s.current.Load() == nil {
		return errNoCert
	}
	return nil
}

// Start follows the Secret.
func (s *servingCert) Start(ctx context.Context) error {
	for {
		if err := s.load(ctx); err != nil {
			ctrl.LoggerFrom(ctx).V(1).Info("the serving certificate cannot be read yet", "cause", err.Error())
		}
		wait := certPollLater
		if s.current.Load() == nil {
			wait = certPollFirst
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// NeedLeaderElection says that every replica serves.
func (s *servingCert) NeedLeaderElection() bool { return false }

func (s *servingCert) load(ctx context.Context) error {
	secret := &corev1.Secret{}
	if err := s.live.Get(ctx, s.key, secret); err != nil {
		return fmt.Errorf("reading Secret %s: %w", s.key, err)
	}
	if old := s.current.Load(); old != nil && bytes.Equal(old.pem, secret.Data[certFile]) {
		return nil
	}
	cert, err := tls.X509KeyPair(secret.Data[certFile], secret.Data[keyFile])
	if err != nil {
		return fmt.Errorf("Secret %s: %w", s.key, err)
	}
	if err := s.write(secret); err != nil {
		return err
	}
	s.current.Store(&loadedCert{cert: cert, pem: secret.Data[certFile], ca: string(secret.Data[caFile])})
	return nil
}

// write leaves the files where cert-controller looks for them.
func (s *servingCert) write(secret *corev1.Secret) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("making the certificate directory: %w", err)
	}
	for _, name := range []string{certFile, keyFile, caFile} {
		if err := os.WriteFile(filepath.Join(s.dir, name), secret.Data[name], 0o600); err != nil {
			return fmt.Errorf("writing the certificate: %w", err)
		}
	}
	return nil
}

// addRotator lets cert-controller make the certificate and fill in the
// webhook configurations' CA.
func addRotator(mgr ctrl.Manager, o *options, hosts []string) error {
	return rotator.AddRotator(mgr, &rotator.CertRotator{
		SecretKey:      types.NamespacedName{Namespace: o.namespace, Name: o.certSecret},
		CertDir:        o.certDir,
		CAName:         "assent-ca",
		CAOrganization: "assent",
		DNSName:        hosts[0],
		ExtraDNSNames:  hosts[1:],
		IsReady:        make(chan struct{}),
		Webhooks: []rotator.WebhookInfo{
			{Name: o.webhookConfig, Type: rotator.Validating},
			{Name: o.webhookConfig, Type: rotator.Mutating},
		},
		FieldOwner: "assent",
	})
}
