// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

const (
	// secretName is the Secret with the service's certificate and token.
	secretName = "ledger"
	// serviceHost is the name that calls reach the service under.
	serviceHost = "ledger.assent-demo.svc"
	// validity is longer than a cluster of the demo lives.
	validity = 7 * 24 * time.Hour
)

// secrets makes the service's certificate and token, unless an earlier demo on
// this cluster has: the service reads them when it starts.
func (d *demo) secrets() error {
	out, err := d.admin("-n", namespace, "get", "secret", secretName, "--ignore-not-found", "-o", `jsonpath={.data.ca\.crt}`)
	if err != nil {
		return err
	}
	if out != "" {
		authority, err := base64.StdEncoding.DecodeString(out)
		d.authority = string(authority)
		return err
	}
	data, err := newSecret(time.Now())
	if err != nil {
		return err
	}
	object, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata":   map[string]string{"name": secretName, "namespace": namespace},
		"stringData": data,
	})
	if err != nil {
		return err
	}
	d.authority = data["ca.crt"]
	_, err = d.as("", string(object), "create", "-f", "-")
	return err
}

// newSecret is a new authority's certificate, a certificate that it signed for
// the service, that one's key, and a random token.
func newSecret(now time.Time) (map[string]string, error) {
	authority := template("Assent demo", now)
	authority.IsCA, authority.BasicConstraintsValid, authority.KeyUsage = true, true, x509.KeyUsageCertSign
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return nil, fmt.Errorf("making an authority: %w", err)
	}
	service := template(serviceHost, now)
	service.DNSNames, service.KeyUsage = []string{serviceHost}, x509.KeyUsageDigitalSignature
	service.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	serviceDER, err := x509.CreateCertificate(rand.Reader, service, authority, key.Public(), authorityKey)
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("writing a key: %w", err)
	}
	return map[string]string{
		"ca.crt":  text("CERTIFICATE", authorityDER),
		"tls.crt": text("CERTIFICATE", serviceDER),
		"tls.key": text("PRIVATE KEY", keyDER),
		"token":   rand.Text(),
	}, nil
}

func template(name string, now time.Time) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity),
	}
}

func text(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
