// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import "time"

// Limits of manifests and effects. A value at the limit is accepted.
const (
	// MaxWordBytes bounds one word of argv. Linux refuses an exec with a longer
	// string (MAX_ARG_STRLEN, 32 pages with the terminating NUL), and a refusal
	// in the Pod would come after the decision.
	MaxWordBytes = 131071
	// MaxWords bounds argv.
	MaxWords = 256
	// MaxEffectBytes bounds the canonical text of an effect, in bytes. With
	// the arguments it has to fit into one Kubernetes object.
	MaxEffectBytes = 256 << 10
	// MaxURLBytes bounds a resolved URL.
	MaxURLBytes = 131072
	// MaxTypeDepth bounds how many ArgumentTypes lie between an argument and
	// the built-in type.
	MaxTypeDepth = 16
	// MaxArguments bounds the arguments of a manifest.
	MaxArguments = 64
	// MaxPatternBytes bounds a regular expression.
	MaxPatternBytes = 1024
	// MaxSchemaBytes bounds a JSON Schema, in bytes of its text.
	MaxSchemaBytes = 16 << 10
	// MaxSchemaCost bounds how many schemas one value may be checked against,
	// with every reference followed. It keeps a small schema from costing
	// exponential time.
	MaxSchemaCost = 1024
	// MaxTextBytes bounds the value of a text argument.
	MaxTextBytes = 32 << 10

	// MaxReceipts is how many receipts of one call can count, and therefore how
	// many people a manifest can demand in all.
	MaxReceipts = 16

	// MaxTimeout bounds how long a call may run.
	MaxTimeout = 24 * time.Hour
)

// Defaults of fields that a manifest leaves out.
const (
	// DefaultApprovalTimeout is how long a proposal waits for approval.
	DefaultApprovalTimeout = time.Hour
	// DefaultReceiptLifetime is how long a receipt counts.
	DefaultReceiptLifetime = 15 * time.Minute
	// DefaultTimeout is how long a call may run.
	DefaultTimeout = 5 * time.Minute
	// DefaultCPU is the CPU of the Pod's container.
	DefaultCPU = "500m"
	// DefaultMemory is the memory of the Pod's container.
	DefaultMemory = "256Mi"
	// DefaultEphemeralStorage is the storage of the Pod's container.
	DefaultEphemeralStorage = "256Mi"
	// DefaultWorkingDir is where a program starts.
	DefaultWorkingDir = "/work"
)
