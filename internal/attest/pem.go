// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

const (
	publicKeyBlock  = "PUBLIC KEY"  // RFC 7468 section 13
	privateKeyBlock = "PRIVATE KEY" // RFC 7468 section 10, PKCS #8

	// maxPEMBytes bounds what is parsed; a key needs about 120 bytes.
	maxPEMBytes = 64 << 10
)

var errNotEd25519 = errors.New("the key is not an Ed25519 key")

// EncodePublicKeysPEM returns the keys as PEM blocks "PUBLIC KEY" (PKIX,
// RFC 8410), one after the other.
func EncodePublicKeysPEM(keys ...ed25519.PublicKey) []byte {
	var out []byte
	for _, key := range keys {
		// It fails for foreign key types only.
		der, _ := x509.MarshalPKIXPublicKey(key)
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: publicKeyBlock, Bytes: der})...)
	}
	return out
}

// ParsePublicKeysPEM reads one or more Ed25519 public keys. Everything in data
// must be such a block or white space, so that a mistyped key is noticed and
// not skipped.
func ParsePublicKeysPEM(data []byte) ([]ed25519.PublicKey, error) {
	blocks, err := parseBlocks(data, publicKeyBlock)
	if err != nil {
		return nil, fmt.Errorf("public keys: %w", err)
	}
	keys := make([]ed25519.PublicKey, 0, len(blocks))
	for i, der := range blocks {
		parsed, err := x509.ParsePKIXPublicKey(der)
		if err != nil {
			return nil, fmt.Errorf("public keys: block %d is not a PKIX public key", i)
		}
		key, ok := parsed.(ed25519.PublicKey)
		if !ok {
			return nil, fmt.Errorf("public keys: block %d: %w", i, errNotEd25519)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// EncodeSeedPEM returns the private key of the seed as a PEM block
// "PRIVATE KEY" (PKCS #8, RFC 8410).
func EncodeSeedPEM(seed []byte) ([]byte, error) {
	if len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("signing seed has %d bytes; an Ed25519 seed has %d", len(seed), ed25519.SeedSize)
	}
	// It fails for foreign key types only.
	der, _ := x509.MarshalPKCS8PrivateKey(ed25519.NewKeyFromSeed(seed))
	return pem.EncodeToMemory(&pem.Block{Type: privateKeyBlock, Bytes: der}), nil
}

// ParseSeedPEM reads exactly one Ed25519 private key and returns its seed.
// Errors never contain any part of the key.
func ParseSeedPEM(data []byte) ([]byte, error) {
	blocks, err := parseBlocks(data, privateKeyBlock)
	if err != nil {
		return nil, fmt.Errorf("private key: %w", err)
	}
	if len(blocks) != 1 {
		return nil, errors.New("private key: give exactly one PEM block")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(blocks[0])
	if err != nil {
		return nil, errors.New("private key: not a PKCS #8 private key")
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("private key: %w", errNotEd25519)
	}
	return key.Seed(), nil
}

func parseBlocks(data []byte, blockType string) ([][]byte, error) {
	if len(data) > maxPEMBytes {
		return nil, fmt.Errorf("longer than %d bytes", maxPEMBytes)
	}
	var blocks [][]byte
	rest := bytes.TrimSpace(data)
	for len(rest) > 0 {
		// pem.Decode would skip text in front of a block.
		if !bytes.HasPrefix(rest, []byte("-----BEGIN "+blockType+"-----")) {
			return nil, fmt.Errorf("expected only PEM blocks %q", blockType)
		}
		block, after := pem.Decode(rest)
		if block == nil || len(block.Headers) != 0 || block.Type != blockType {
			return nil, fmt.Errorf("block %d is not well-formed PEM", len(blocks))
		}
		blocks = append(blocks, block.Bytes)
		rest = bytes.TrimSpace(after)
	}
	if len(blocks) == 0 {
		return nil, fmt.Errorf("no PEM block %q", blockType)
	}
	return blocks, nil
}
