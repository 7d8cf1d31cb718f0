// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cedartext reads Cedar policy text as far as is needed around
// cedar-go: it bounds a text before cedar-go's recursive parser sees it, and it
// finds the line and column of what is wrong, which cedar-go's syntax tree no
// longer knows.
//
// It never decides what a policy means. A text that this package accepts may
// still be refused by cedar-go, and only cedar-go evaluates.
package cedartext
