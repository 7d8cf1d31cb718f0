// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/internal/attest"
)

// Keys and annotations of the signing Secret, and the key of the ConfigMap with
// the public keys.
const (
	// secretSeed holds the signing key, a PKCS#8 PEM block.
	secretSeed = "signing.pem"
	// secretPrevious holds the key before it: it verifies, and derives the
	// keys of results that are under way, until it is removed.
	secretPrevious = "previous.pem"
	// secretNext holds the key that comes next: every replica verifies with it
	// before any signs with it.
	secretNext    = "next.pem"
	configMapKeys = "keys.pem"
	// annotationRotate asks for a new key whenever its value changes;
	// annotationRotated is the value that was obeyed last, and
	// annotationNextSince when the next key was made.
	annotationRotate    = "assent.dev/rotate"
	annotationRotated   = "assent.dev/rotated"
	annotationNextSince = "assent.dev/next-since"
	// keyPoll is how often the Secret is looked at for a rotation.
	keyPoll = 15 * time.Second
	// keySeen is how long it takes until every replica has seen a change.
	keySeen = 4 * keyPoll
)

// signingKeys holds the keys that are in force.
type signingKeys struct {
	client    client.Client
	live      client.Reader
	namespace string
	secret    string
	configMap string
	now       func() time.Time
	random    io.Reader
	// startDeadline is how long a granted call may take to start. Its Pod knows
	// the keys of the moment at which it was granted.
	startDeadline time.Duration
	ring          atomic.Pointer[attest.Keyring]
}

// current returns the keys that are in force.
func (k *signingKeys) current() *attest.Keyring { return k.ring.Load() }

// load reads the signing Secret, creating it on the first start, takes a
// rotation one step further, and publishes the public keys. Of two replicas
// that write at once one succeeds and the other reads.
func (k *signingKeys) load(ctx context.Context) error {
	s, err := k.read(ctx)
	if err != nil {
		return err
	}
	if s, err = k.rotate(ctx, s); err != nil {
		return err
	}
	ring, err := ringOf(s)
	if err != nil {
		return fmt.Errorf("Secret %s/%s: %w", k.namespace, k.secret, err)
	}
	old := k.ring.Swap(ring)
	if old != nil && bytes.Equal(publicPEM(old.PublicKeys()), publicPEM(ring.PublicKeys())) {
		return nil
	}
	return k.publish(ctx, ring)
}

// rotate does what the annotations of the Secret ask for: a new key becomes the
// next one, and later, when every replica knows it, the one that signs.
func (k *signingKeys) rotate(ctx context.Context, s *corev1.Secret) (*corev1.Secret, error) {
	next := s.DeepCopy()
	switch wanted := s.Annotations[annotationRotate]; {
	case len(s.Data[secretNext]) > 0:
		if !k.due(next) {
			break
		}
		next.Data[secretPrevious], next.Data[secretSeed] = s.Data[secretSeed], s.Data[secretNext]
		delete(next.Data, secretNext)
		delete(next.Annotations, annotationNextSince)
	case wanted != "" && wanted != s.Annotations[annotationRotated]:
		seed, err := k.newSeed()
		if err != nil {
			return nil, err
		}
		next.Data[secretNext] = seed
		next.Annotations[annotationRotated] = wanted
		next.Annotations[annotationNextSince] = k.now().UTC().Format(time.RFC3339)
	}
	if apiequality.Semantic.DeepEqual(s, next) {
		return s, nil
	}
	err := k.client.Update(ctx, next)
	if apierrors.IsConflict(err) {
		return k.read(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("rotating the key in Secret %s/%s: %w", k.namespace, k.secret, err)
	}
	return next, nil
}

// due says whether the next key was published for long enough. A key that a
// person put there begins its time when it is first seen.
func (k *signingKeys) due(s *corev1.Secret) bool {
	since, err := time.Parse(time.RFC3339, s.Annotations[annotationNextSince])
	if err != nil {
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		s.Annotations[annotationNextSince] = k.now().UTC().Format(time.RFC3339)
		return false
	}
	return k.now().Sub(since) >= k.overlap()
}

// overlap is how long the next key is published before it signs: until all
// replicas have seen it, so that none takes a call that another sealed for a
// forgery, and every call that was granted before that has started or is given
// up, so that no runner takes its ticket for one.
func (k *signingKeys) overlap() time.Duration { return keySeen + k.startDeadline }

func (k *signingKeys) newSeed() ([]byte, error) {
	seed, err := attest.GenerateSeed(k.random)
	if err != nil {
		return nil, err
	}
	return attest.EncodeSeedPEM(seed)
}

func (k *signingKeys) read(ctx context.Context) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	key := client.ObjectKey{Namespace: k.namespace, Name: k.secret}
	err := k.live.Get(ctx, key, s)
	if !apierrors.IsNotFound(err) {
		return s, err
	}
	pem, err := k.newSeed()
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
	for _, name := range []string{secretPrevious, secretNext} {
		if len(s.Data[name]) == 0 {
			continue
		}
		other, err := attest.ParseSeedPEM(s.Data[name])
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", name, err)
		}
		if ring, err = ring.WithPrevious(other); err != nil {
			return nil, err
		}
	}
	return ring, nil
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
