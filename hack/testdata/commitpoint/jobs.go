// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package commitpoint holds each way to create a Job or to sign a ticket that
// the search over the source must find. It is not part of any program.
package commitpoint

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func creates(ctx context.Context, c client.Client, any client.Object, r rest.Interface) {
	_ = c.Create(ctx, &batchv1.Job{})
	_ = c.Create(ctx, any)
	_ = c.Create(ctx, &unstructured.Unstructured{})
	_ = c.Patch(ctx, &batchv1.Job{}, client.Merge)
	_ = r.Post()
	// This one creates something else.
	_ = c.Create(ctx, &corev1.Secret{})
}
