// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/internal/attest"
)

// Keys of the signing Secret and of the ConfigMap with the public keys.
const (
	// secretSeed holds the signing key, a PKCS#8 PEM block.
	secretSeed = "signing.pem"
	// secretPrevious holds the key before it: it verifies, and derives the
	// keys of results that are under way, until it is removed.
	secretPrevious = "previous.pem"
	configMapKeys  = "keys.pem"
	// keyPoll is how often the Secret is looked at for a rotation.
	keyPoll = 15 * time.Second
)

// signingKeys holds the keys that are in force.
type signingKeys struct {
	client    client.Client
	live      client.Reader
	namespace string
	secret    string
	configMap string
	ring      atomic.Pointer[attest.Keyring]
}

// current returns the keys that are in force.
func (k *signingKeys) current() *attest.Keyring { return k.ring.Load() }

// load reads the signing Secret, creating it on the first start, and publishes
// the public keys. Of two replicas that start at once one creates the Secret
// and the other reads it.
func (k *signingKeys) load(ctx context.Context) error {
	s, err := k.read(ctx)
	if err != nil {
		return err
	}
	ring, err := ringOf(s)
	if err != nil {
		return fmt.Errorf("Secret %s/%s: %w", k.namespace, k.secret, err)
	}
	old := k.ring.Swap(ring)
	if old != nil && old.SigningKeyID() == ring.SigningKeyID() && len(old.PublicKeys()) == len(ring.PublicKeys()) {
		return nil
	}
	return k.publish(ctx, ring)
}

func (k *signingKeys) read(ctx context.Context) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	key := client.ObjectKey{Namespace: k.namespace, Name: k.secret}
	err := k.live.Get(ctx, key, s)
	if !apierrors.IsNotFound(err) {
		return s, err
	}
	seed, err := attest.GenerateSeed(rand.Reader)
	if err != nil {
		return nil, err
	}
	pem, err := attest.EncodeSeedPEM(seed)
	if err != nil {
		return nil, err
	}
	s = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: k.secret},
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{secretSeed: pem},
	}
	if err := k.client.Create(ctx, s); err == nil || !apierrors.IsAlreadyExists(err) {
		return s, err
	}
	s = &corev1.Secret{}
	return s, k.live.Get(ctx, key, s)
}

func ringOf(s *corev1.Secret) (*attest.Keyring, error) {
	seed, err := attest.ParseSeedPEM(s.Data[secretSeed])
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", secretSeed, err)
	}
	ring, err := attest.NewKeyring(seed)
	if err != nil {
		return nil, err
	}
	if len(s.Data[secretPrevious]) == 0 {
		return ring, nil
	}
	previous, err := attest.ParseSeedPEM(s.Data[secretPrevious])
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", secretPrevious, err)
	}
	return ring.WithPrevious(previous)
}

func (k *signingKeys) publish(ctx context.Context, ring *attest.Keyring) error {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: k.configMap}}
	data := map[string]string{configMapKeys: string(publicPEM(ring.PublicKeys()))}
	err := k.live.Get(ctx, client.ObjectKeyFromObject(cm), cm)
	if apierrors.IsNotFound(err) {
		cm.Data = data
		err = k.client.Create(ctx, cm)
	} else if err == nil {
		cm.Data = data
		err = k.client.Update(ctx, cm)
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		// Another replica publishes the same keys.
		return nil
	}
	if err != nil {
		return fmt.Errorf("publishing the public keys in ConfigMap %s/%s: %w", k.namespace, k.configMap, err)
	}
	return nil
}

func publicPEM(keys []ed25519.PublicKey) []byte { return attest.EncodePublicKeysPEM(keys...) }

// Start follows rotations of the signing key.
func (k *signingKeys) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(keyPoll):
			if err := k.load(ctx); err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "reading the signing keys; the previous ones stay in force")
			}
		}
	}
}

// NeedLeaderElection says that every replica follows the keys.
func (k *signingKeys) NeedLeaderElection() bool { return false }
