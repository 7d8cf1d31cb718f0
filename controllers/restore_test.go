// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/controllers"
)

// versions answers each read with the next resource version, after its gate.
type versions struct {
	client.Reader
	next chan answer
}

type answer struct {
	version string
	gate    chan struct{}
}

func (v versions) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	// What is read for each grant must not grow with the calls that there are.
	if o := (&client.ListOptions{}).ApplyOptions(opts); o.Namespace != metav1.NamespaceSystem || o.Limit != 1 {
		return fmt.Errorf("a list of everything: %+v", o)
	}
	a := <-v.next
	list.SetResourceVersion(a.version)
	if a.gate != nil {
		<-a.gate
	}
	return nil
}

// Calls are granted by many workers at once. A read that began first and comes
// last says nothing about a restore.
func TestWatermark_ReadsThatOvertakeEachOther_AreNoRestore(t *testing.T) {
	reads := versions{next: make(chan answer)}
	w := &controllers.Watermark{Live: reads, Path: filepath.Join(t.TempDir(), "mark"), Now: time.Now}
	check := func() string {
		restored, err := w.Check(t.Context())
		if err != nil {
			t.Error(err)
		}
		return restored
	}
	slow, gate := make(chan string), make(chan struct{})
	go func() { slow <- check() }()
	reads.next <- answer{"100", gate}
	go func() { slow <- check() }()
	reads.next <- answer{"105", nil}
	if restored := <-slow; restored != "" {
		t.Fatalf("the faster read: %s", restored)
	}
	close(gate)
	if restored := <-slow; restored != "" {
		t.Errorf("the slower read: %s", restored)
	}
	go func() { slow <- check() }()
	reads.next <- answer{"104", nil}
	if restored := <-slow; restored == "" {
		t.Error("a store that fell behind the mark was not noticed: the slower read must not have moved the mark back")
	}
}
