// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config holds what is installed beside the operator. The operator
// carries it, so that it can tell what is in force from what should be.
package config

import "embed"

// Files are the kinds, the cluster-wide permissions, the webhooks and the
// admission policies, under the names that they have in this folder. The
// operator's namespace is called "system" in them.
//
//go:embed crd/*.yaml rbac/role.yaml webhook/manifests.yaml admission/policies.yaml
var Files embed.FS
