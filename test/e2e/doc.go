// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests Assent as it is installed: charts, images, kubelet, real
// Jobs. "make test-e2e" starts the development cluster for it, or uses the one
// that KUBECONFIG names, where the images must have been loaded.
package e2e
