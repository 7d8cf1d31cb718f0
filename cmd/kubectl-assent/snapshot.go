// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/snapshot"
)

// snapshotOptions are the flags of kubectl assent snapshot.
type snapshotOptions struct {
	digest   bool
	proposal bool
	output   string
	vectors  string
}

// newSnapshotCommand prints the canonical text of a JSON text: the reference
// that other implementations can be compared with.
func newSnapshotCommand(streams Streams) *cobra.Command {
	var o snapshotOptions
	c := &cobra.Command{
		Use:   "snapshot [FILE|-]",
		Short: "Print the canonical text of arguments, or why there is none",
		Long: "Print the canonical text (RFC 8785) of a JSON text, byte for byte: without a line end, so that its\n" +
			"SHA-256 is the digest. Text outside the strict domain is refused with exit code 2 and\n" +
			"{\"stage\",\"reason\"} on standard error. Without a FILE, or with -, it reads standard input.",
		Example: "  kubectl assent snapshot arguments.json\n" +
			"  kubectl assent snapshot --digest - < arguments.json\n" +
			"  kubectl assent snapshot --vectors json_vectors.json",
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return o.run(args, streams) },
	}
	f := c.Flags()
	f.BoolVar(&o.digest, "digest", false, "print the SHA-256 of the canonical text instead")
	f.BoolVar(&o.proposal, "proposal", false,
		"apply the rule for arguments that came through kube-apiserver: U+FFFD is refused")
	f.StringVarP(&o.output, "output", "o", "", "output format: json, or nothing for text")
	f.StringVar(&o.vectors, "vectors", "",
		"answer a JSON array of {name, input_base64} from this file, one JSON line each")
	c.MarkFlagsMutuallyExclusive("vectors", "digest")
	return c
}

// run does what the flags say.
func (o *snapshotOptions) run(args []string, streams Streams) error {
	if o.output != "" && o.output != "json" {
		return fmt.Errorf("output format must be json or empty, not %q", o.output)
	}
	if o.vectors != "" {
		if len(args) > 0 {
			return errors.New("--vectors takes the place of FILE; give one of them")
		}
		return o.answerVectors(streams)
	}
	name := "-"
	if len(args) > 0 {
		name = args[0]
	}
	// One byte more than allowed is enough to refuse a file of any size.
	text, err := readInput(name, snapshot.MaxBytes+1, streams)
	if err != nil {
		return fmt.Errorf("reading the text: %w", err)
	}
	s, err := o.take(text)
	if err != nil {
		return o.refuse(err, streams)
	}
	return o.print(s, streams)
}

// take makes the snapshot of a text.
func (o *snapshotOptions) take(text []byte) (*snapshot.Snapshot, error) {
	decode := snapshot.DecodeText
	if o.proposal {
		decode = snapshot.Decode
	}
	tree, err := decode(string(text))
	if err != nil {
		return nil, err
	}
	return snapshot.New(tree)
}

// refusal is what is printed about a refused text.
type refusal struct {
	Stage   snapshot.Stage  `json:"stage"`
	Reason  snapshot.Reason `json:"reason"`
	Path    string          `json:"path,omitempty"`
	Message string          `json:"message,omitempty"`
}

// refuse prints a refusal and sets the exit code. Only -o json tells where.
func (o *snapshotOptions) refuse(err error, streams Streams) error {
	refused, ok := errors.AsType[*snapshot.Error](err)
	if !ok {
		return err
	}
	r := refusal{Stage: refused.Stage, Reason: refused.Reason}
	if o.output == "json" {
		r.Path, r.Message = refused.Path, refused.Error()
	}
	if err := json.NewEncoder(streams.Err).Encode(r); err != nil {
		return fmt.Errorf("writing the refusal: %w", err)
	}
	return &ExitError{Code: exitRefused}
}

// frozen is what -o json prints about an accepted text.
type frozen struct {
	ArgsCanonicalJSON string `json:"argsCanonicalJson"`
	ArgsDigest        string `json:"argsDigest"`
}

// print writes an accepted text in the format asked for.
func (o *snapshotOptions) print(s *snapshot.Snapshot, streams Streams) error {
	var err error
	switch {
	case o.output == "json":
		err = encodeLine(streams.Out, frozen{s.Canonical(), s.Digest()})
	case o.digest:
		_, err = fmt.Fprintln(streams.Out, s.Digest())
	default:
		_, err = io.WriteString(streams.Out, s.Canonical())
	}
	if err != nil {
		return fmt.Errorf("writing the snapshot: %w", err)
	}
	return nil
}

// vector is one question of a vector file; other members are ignored.
type vector struct {
	Name  string `json:"name"`
	Input []byte `json:"input_base64"`
}

// answer is the line printed for a vector.
type answer struct {
	Name      string          `json:"name"`
	Accept    bool            `json:"accept"`
	Canonical string          `json:"canonical"`
	Reason    snapshot.Reason `json:"reason"`
}

// answerVectors answers a file of vectors. Refused vectors are answers, not
// failures, so the exit code is 0.
func (o *snapshotOptions) answerVectors(streams Streams) error {
	text, err := readInput(o.vectors, maxVectorBytes, streams)
	if err != nil {
		return fmt.Errorf("reading the vectors: %w", err)
	}
	var vectors []vector
	if err := json.Unmarshal(text, &vectors); err != nil {
		return fmt.Errorf("reading the vectors: %w", err)
	}
	for _, v := range vectors {
		a := answer{Name: v.Name}
		s, err := o.take(v.Input)
		var refused *snapshot.Error
		switch {
		case err == nil:
			a.Accept, a.Canonical = true, s.Canonical()
		case errors.As(err, &refused):
			a.Reason = refused.Reason
		default:
			return fmt.Errorf("taking the snapshot: %w", err)
		}
		if err := encodeLine(streams.Out, a); err != nil {
			return fmt.Errorf("writing the answers: %w", err)
		}
	}
	return nil
}

// maxVectorBytes bounds a vector file: trusted, but not worth all memory.
const maxVectorBytes = 64 << 20

// encodeLine writes one line of JSON with characters as they are: canonical
// text is not meant for HTML.
func encodeLine(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// readInput reads at most limit bytes of a file, or of standard input for "-".
func readInput(name string, limit int64, streams Streams) ([]byte, error) {
	source := streams.In
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		source = file
	}
	return io.ReadAll(io.LimitReader(source, limit))
}
