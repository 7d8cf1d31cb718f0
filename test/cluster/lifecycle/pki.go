// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"

	"sigs.k8s.io/yaml"
)

// validity is how long every certificate of a cluster holds. The clusters are
// for development and made anew on each start.
const validity = 365 * 24 * time.Hour

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	pem  []byte
}

// identity is a certificate with its key, both PEM.
type identity struct {
	cert, key []byte
}

// subject says what a certificate is for. Kubernetes takes the common name for
// the user name and the organisations for the groups.
type subject struct {
	name   string
	groups []string
	// hosts makes it a server certificate for these names and addresses.
	hosts []string
}

func newAuthority(name string, now time.Time) (*authority, identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, identity{}, fmt.Errorf("making the key of %s: %w", name, err)
	}
	unsigned, err := certificate(subject{name: name}, now)
	if err != nil {
		return nil, identity{}, err
	}
	unsigned.IsCA = true
	unsigned.BasicConstraintsValid = true
	unsigned.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	unsigned.ExtKeyUsage = nil
	der, err := x509.CreateCertificate(rand.Reader, unsigned, unsigned, key.Public(), key)
	if err != nil {
		return nil, identity{}, fmt.Errorf("making the certificate of %s: %w", name, err)
	}
	id, err := encode(der, key)
	if err != nil {
		return nil, identity{}, err
	}
	ca, err := parseAuthority(id)
	return ca, id, err
}

func parseAuthority(id identity) (*authority, error) {
	certBlock, _ := pem.Decode(id.cert)
	keyBlock, _ := pem.Decode(id.key)
	if certBlock == nil || keyBlock == nil {
		return nil, errors.New("reading the cluster's certificate authority: not PEM")
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's certificate authority: %w", err)
	}
	key, err := x509.ParsePKCS8PrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's certificate authority: %w", err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("reading the cluster's certificate authority: its key cannot sign")
	}
	return &authority{cert: cert, key: signer, pem: id.cert}, nil
}

func (a *authority) issue(s subject, now time.Time) (identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, fmt.Errorf("making the key of %s: %w", s.name, err)
	}
	unsigned, err := certificate(s, now)
	if err != nil {
		return identity{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, unsigned, a.cert, key.Public(), a.key)
	if err != nil {
		return identity{}, fmt.Errorf("making the certificate of %s: %w", s.name, err)
	}
	return encode(der, key)
}

func certificate(s subject, now time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("making the certificate of %s: %w", s.name, err)
	}
	cert := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: s.name, Organization: s.groups},
		// The clocks of virtual machines drift against their hosts.
		NotBefore:   now.Add(-time.Hour),
		NotAfter:    now.Add(validity),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, host := range s.hosts {
		cert.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		if ip := net.ParseIP(host); ip != nil {
			cert.IPAddresses = append(cert.IPAddresses, ip)
		} else {
			cert.DNSNames = append(cert.DNSNames, host)
		}
	}
	return cert, nil
}

func encode(certDER []byte, key crypto.Signer) (identity, error) {
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return identity{}, fmt.Errorf("encoding a key: %w", err)
	}
	return identity{
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certDER}),
		key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}, nil
}

// write stores an identity as NAME.crt and NAME.key.
func (l Layout) write(name string, id identity) error {
	if err := os.WriteFile(l.pki(name+".crt"), id.cert, 0o600); err != nil {
		return fmt.Errorf("storing the certificate of %s: %w", name, err)
	}
	if err := os.WriteFile(l.pki(name+".key"), id.key, 0o600); err != nil {
		return fmt.Errorf("storing the key of %s: %w", name, err)
	}
	return nil
}

// authority loads the authority that signs the cluster's users and servers.
func (l Layout) authority() (*authority, error) {
	cert, err := os.ReadFile(l.pki("ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's certificate authority: %w", err)
	}
	key, err := os.ReadFile(l.pki("ca.key"))
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's certificate authority: %w", err)
	}
	return parseAuthority(identity{cert: cert, key: key})
}

// kubeconfig renders a client configuration with everything inline, so that the
// file can be copied anywhere.
func kubeconfig(server string, ca []byte, user string, id identity) ([]byte, error) {
	const name = "assent"
	// []byte is base64 in JSON, which is what the *-data fields want.
	type named map[string]any
	return yaml.Marshal(named{
		"apiVersion":      "v1",
		"kind":            "Config",
		"current-context": name,
		"clusters": []named{{"name": name, "cluster": named{
			"server": server, "certificate-authority-data": ca,
		}}},
		"users": []named{{"name": user, "user": named{
			"client-certificate-data": id.cert, "client-key-data": id.key,
		}}},
		"contexts": []named{{"name": name, "context": named{"cluster": name, "user": user}}},
	})
}
