// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/assent-dev/assent/internal/attest"
)

// startDeadline is longer than it takes until all replicas know a key.
const startDeadline = 5 * time.Minute

// replicas are operators that share one cluster and one clock.
type replicas struct {
	*testing.T
	client client.Client
	time   time.Time
}

func (r *replicas) start() *signingKeys {
	r.Helper()
	k := &signingKeys{
		client: r.client, live: r.client, namespace: "assent-system", secret: "assent-signing", configMap: "assent-public-keys",
		now: func() time.Time { return r.time }, random: rand.Reader, startDeadline: startDeadline,
	}
	r.poll(k)
	return k
}

func (r *replicas) poll(all ...*signingKeys) {
	r.Helper()
	for _, k := range all {
		if err := k.load(r.Context()); err != nil {
			r.Fatal(err)
		}
	}
}

func (r *replicas) secret() *corev1.Secret {
	r.Helper()
	s := &corev1.Secret{}
	if err := r.client.Get(r.Context(), client.ObjectKey{Namespace: "assent-system", Name: "assent-signing"}, s); err != nil {
		r.Fatal(err)
	}
	return s
}

func (r *replicas) ask(value string) {
	r.Helper()
	s := r.secret()
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, annotationRotate, value)
	if err := r.client.Update(r.Context(), s); err != nil {
		r.Fatal(err)
	}
}

// published is how many keys the ConfigMap has, and whether this one is first.
func (r *replicas) published(k *signingKeys) int {
	r.Helper()
	cm := &corev1.ConfigMap{}
	if err := r.client.Get(r.Context(), client.ObjectKey{Namespace: "assent-system", Name: "assent-public-keys"}, cm); err != nil {
		r.Fatal(err)
	}
	if diff := cmp.Diff(string(publicPEM(k.current().PublicKeys())), cm.Data[configMapKeys]); diff != "" {
		r.Errorf("published keys (-in force +published):\n%s", diff)
	}
	return strings.Count(cm.Data[configMapKeys], "BEGIN PUBLIC KEY")
}

func sign(t *testing.T, k *attest.Keyring) (text, fingerprint string) {
	t.Helper()
	fingerprint = strings.Repeat("a", 64)
	text, err := k.Sign(attest.KindReceiptSeal, "x", fingerprint, attest.ReceiptSeal{
		SealID: strings.Repeat("0", 32), Namespace: "n", Kind: attest.ObjectApprovalReceipt, ProposalName: "p", ProposalUID: "u",
		Fingerprint: fingerprint, Decision: attest.DecisionApproved, Approver: attest.User{Username: "alice"},
		IssuedAt: time.Unix(1, 0).UTC(), ExpiresAt: time.Unix(2, 0).UTC(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return text, fingerprint
}

func (r *replicas) accept(by *signingKeys, text, fingerprint string) bool {
	var s attest.ReceiptSeal
	return by.current().Verify(attest.KindReceiptSeal, text, fingerprint, &s) == nil
}

func TestKeys_TwoReplicasStartWithOneKey(t *testing.T) {
	r := &replicas{T: t, client: fake.NewFakeClient(), time: time.Unix(1000, 0)}
	a, b := r.start(), r.start()
	if a.current().SigningKeyID() != b.current().SigningKeyID() {
		t.Error("two replicas sign with two keys")
	}
	if n := r.published(a); n != 1 {
		t.Errorf("%d keys are published, want 1", n)
	}
}

func TestKeys_RotateWithoutAMomentInWhichOneReplicaDistrustsAnother(t *testing.T) {
	r := &replicas{T: t, client: fake.NewFakeClient(), time: time.Unix(1000, 0)}
	a, b := r.start(), r.start()
	first := a.current().SigningKeyID()
	inFlight, fingerprint := sign(t, a.current())
	r.ask("monday")
	// b is behind by up to one poll in every step.
	r.poll(a)
	for range 40 {
		for _, pair := range [][2]*signingKeys{{a, b}, {b, a}} {
			text, fp := sign(t, pair[0].current())
			if !r.accept(pair[1], text, fp) {
				t.Fatalf("after %v one replica distrusts what another seals", r.time.Sub(time.Unix(1000, 0)))
			}
			if !r.accept(pair[0], inFlight, fingerprint) {
				t.Fatal("a call in flight is distrusted")
			}
		}
		r.time = r.time.Add(keyPoll)
		r.poll(b, a)
		a, b = b, a
	}
	if a.current().SigningKeyID() == first || a.current().SigningKeyID() != b.current().SigningKeyID() {
		t.Error("the key was not rotated once for both")
	}
	if n := r.published(a); n != 2 {
		t.Errorf("%d keys are published, want the new and the previous one", n)
	}
	second := a.current().SigningKeyID()
	r.time = r.time.Add(time.Hour)
	r.poll(a, b)
	if a.current().SigningKeyID() != second {
		t.Error("the same annotation rotated again")
	}
}

// A Pod knows the keys of the moment at which its call was granted.
func TestKeys_NoneSignsBeforeTheCallsThatDoNotKnowItHaveStarted(t *testing.T) {
	for name, begin := range map[string]func(*replicas, *signingKeys){
		"made by the operator": func(r *replicas, _ *signingKeys) { r.ask("monday") },
		"of the user": func(r *replicas, k *signingKeys) {
			seed, err := k.newSeed()
			if err != nil {
				t.Fatal(err)
			}
			s := r.secret()
			s.Data[secretNext] = seed
			if err := r.client.Update(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		},
	} {
		r := &replicas{T: t, client: fake.NewFakeClient(), time: time.Unix(1000, 0)}
		leader, lagging := r.start(), r.start()
		first := leader.current().SigningKeyID()
		begin(r, leader)
		// The last moment at which a call is granted by one who knows one key.
		var granted time.Time
		for leader.current().SigningKeyID() == first {
			if len(lagging.current().PublicKeys()) == 1 {
				granted = r.time
			}
			r.time = r.time.Add(time.Second)
			r.poll(leader)
			if r.time.Unix()%int64(keyPoll/time.Second) == 0 {
				r.poll(lagging)
			}
		}
		if got := r.time.Sub(granted); got < startDeadline {
			t.Errorf("%s: a key signs %v after a call that does not know it was granted, which may start until %v", name, got, startDeadline)
		}
	}
}

func TestKeys_ANewSecretOfTheUserIsTaken(t *testing.T) {
	r := &replicas{T: t, client: fake.NewFakeClient(), time: time.Unix(1000, 0)}
	a := r.start()
	old, fingerprint := sign(t, a.current())
	seed, err := a.newSeed()
	if err != nil {
		t.Fatal(err)
	}
	s := r.secret()
	s.Data[secretPrevious], s.Data[secretSeed] = s.Data[secretSeed], seed
	if err := r.client.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	r.poll(a)
	if !r.accept(a, old, fingerprint) {
		t.Error("the previous key of the user does not verify")
	}
	// Without it everything that it sealed is void, which is what somebody
	// wants whose key was stolen.
	s = r.secret()
	delete(s.Data, secretPrevious)
	if err := r.client.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	r.poll(a)
	if r.accept(a, old, fingerprint) {
		t.Error("a key that was taken away still verifies")
	}
	if n := r.published(a); n != 1 {
		t.Errorf("%d keys are published, want 1", n)
	}
}

func TestKeys_AnUnreadableSecretKeepsTheKeysInForce(t *testing.T) {
	r := &replicas{T: t, client: fake.NewFakeClient(), time: time.Unix(1000, 0)}
	a := r.start()
	before := a.current().SigningKeyID()
	for _, name := range []string{secretSeed, secretPrevious, secretNext} {
		s := r.secret()
		original := s.DeepCopy()
		s.Data[name] = []byte("not a key")
		if err := r.client.Update(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if err := a.load(t.Context()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want an error that names it", name, err)
		}
		if a.current().SigningKeyID() != before {
			t.Errorf("%s: the keys in force changed", name)
		}
		s = r.secret()
		s.Data, s.Annotations = original.Data, original.Annotations
		if err := r.client.Update(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}
