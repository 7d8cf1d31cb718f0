// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/assent-dev/assent/controllers"
	disk "github.com/assent-dev/assent/internal/audit/journal"
	"github.com/assent-dev/assent/internal/observe"
)

// controllers runs the operator's controllers for the world's namespace. The
// counter is that of the Jobs that they created.
func (w *world) controllers(b testing.TB) *atomic.Int64 {
	b.Helper()
	made := &atomic.Int64{}
	mgr, err := ctrl.NewManager(server, ctrl.Options{
		Scheme: admin.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{w.namespace: {}}, DefaultTransform: cache.TransformStripManagedFields(),
		},
		Controller: config.Controller{SkipNameValidation: new(true)},
		NewClient: func(config *rest.Config, options client.Options) (client.Client, error) {
			options.Cache.DisableFor = []client.Object{&corev1.Namespace{}, &corev1.Pod{}}
			c, err := client.New(config, options)
			if err != nil {
				return nil, err
			}
			return &counting{c, made}, nil
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := observe.RegisterIndexes(w.ctx, mgr.GetFieldIndexer()); err != nil {
		b.Fatal(err)
	}
	o := &operator{w: w}
	shared := o.config(mgr.GetClient())
	shared.Live, shared.Now = observe.Share(admin), time.Now
	log, err := disk.Open(w.ctx, disk.Options{Dir: filepath.Join(b.TempDir(), "audit"), Origin: "test", Keys: keys, Now: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = log.Close(context.Background()) })
	shared.Journal = log
	shared.Events = controllers.NewEvents(w.ctx, mgr.GetClient())
	mark := &controllers.Watermark{Live: shared.Live, Path: filepath.Join(b.TempDir(), "mark"), Now: time.Now}
	shared.Restored = mark.Check
	policies := &controllers.PolicyReconciler{Config: shared}
	shared.Behind = policies.Behind
	for _, c := range []interface{ SetupWithManager(ctrl.Manager) error }{
		policies, &controllers.ManifestReconciler{Config: shared}, &controllers.SessionReconciler{Config: shared},
		&controllers.ProposalReconciler{Config: shared}, &controllers.BatchReconciler{Config: shared},
	} {
		if err := c.SetupWithManager(mgr); err != nil {
			b.Fatal(err)
		}
	}
	go func() {
		if err := mgr.Start(w.ctx); err != nil {
			panic(err)
		}
	}()
	if !mgr.GetCache().WaitForCacheSync(w.ctx) {
		b.Fatal("the informers did not start")
	}
	if err := policies.Load(w.ctx); err != nil {
		b.Fatal(err)
	}
	return made
}

// counting counts the Jobs that were created.
type counting struct {
	client.Client
	made *atomic.Int64
}

func (c *counting) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	err := c.Client.Create(ctx, obj, opts...)
	if _, ok := obj.(*batchv1.Job); ok && err == nil {
		c.made.Add(1)
	}
	return err
}
