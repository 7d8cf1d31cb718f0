// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/audit"
	"github.com/assent-dev/assent/internal/audit/verify"
)

// recordView is a record as it is printed.
type recordView struct {
	Index       uint64            `json:"index"`
	Type        audit.RecordType  `json:"type"`
	ID          string            `json:"id"`
	Time        time.Time         `json:"time"`
	Proposal    *attest.ObjectRef `json:"proposal,omitempty"`
	Fingerprint string            `json:"fingerprint,omitempty"`
	TraceID     string            `json:"traceID,omitempty"`
	Position    audit.Position    `json:"position"`
	KeyID       string            `json:"keyID"`
	Data        json.RawMessage   `json:"data"`
}

func viewOf(index uint64, e *audit.Entry) (recordView, error) {
	data, err := attest.Encode(e.Record.Data)
	r := e.Record
	return recordView{
		Index: index, Type: e.Type, ID: r.ID, Time: r.Time, Proposal: r.Proposal, Fingerprint: r.Fingerprint,
		TraceID: r.TraceID, Position: r.Position, KeyID: e.KeyID, Data: data,
	}, err
}

// auditListOptions are the flags of kubectl assent audit list.
type auditListOptions struct {
	auditOptions
	from        uint64
	limit       uint64
	recordType  string
	namespace   string
	proposal    string
	fingerprint string
}

func newAuditListCommand(streams Streams) *cobra.Command {
	var o auditListOptions
	c := &cobra.Command{
		Use:   "list DIR|URL --key FILE",
		Short: "List the records of an audit log",
		Long: "List the records of an audit log. The whole log is checked on the way; when something is wrong,\n" +
			"the list ends there and the exit code is 2. With -o json, each record is one line of JSON.",
		Example: "  kubectl assent audit list /var/lib/assent/audit --key assent.pub --proposal p-1 -n agents",
		Args:    cobra.ExactArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return o.run(c, args[0], streams) },
	}
	o.addFlags(c)
	f := c.Flags()
	f.Uint64Var(&o.from, "from", 0, "first index to list")
	f.Uint64Var(&o.limit, "limit", 0, "how many records to list; 0 means all")
	f.StringVar(&o.recordType, "type", "", "only records of this type")
	f.StringVarP(&o.namespace, "namespace", "n", "", "only records about proposals of this namespace")
	f.StringVar(&o.proposal, "proposal", "", "only records about proposals of this name or UID")
	f.StringVar(&o.fingerprint, "fingerprint", "", "only records about calls with this fingerprint")
	return c
}

func (o *auditListOptions) run(c *cobra.Command, location string, streams Streams) error {
	keys, src, err := o.openLog(location, streams)
	if err != nil {
		return err
	}
	p := &printer{w: streams.Out}
	if o.output != outputJSON {
		p.line("%-8s %-25s %-20s %-40s %s", "INDEX", "TIME", "TYPE", "PROPOSAL", "WHAT")
	}
	listed := uint64(0)
	report, err := verify.Log(c.Context(), src, verify.Options{
		Keys: keys, Origin: o.origin,
		Visit: func(index uint64, e *audit.Entry) error {
			if !o.wants(index, e) || (o.limit > 0 && listed >= o.limit) {
				return p.err
			}
			listed++
			return o.print(p, index, e)
		},
	})
	if err != nil {
		return err
	}
	if !report.OK() {
		return errNotWhole(report)
	}
	return p.err
}

func (o *auditListOptions) wants(index uint64, e *audit.Entry) bool {
	about := attest.ObjectRef{}
	if e.Record.Proposal != nil {
		about = *e.Record.Proposal
	}
	return index >= o.from &&
		(o.recordType == "" || o.recordType == string(e.Type)) &&
		(o.namespace == "" || o.namespace == about.Namespace) &&
		(o.proposal == "" || o.proposal == about.Name || o.proposal == about.UID) &&
		(o.fingerprint == "" || o.fingerprint == e.Record.Fingerprint)
}

func (o *auditListOptions) print(p *printer, index uint64, e *audit.Entry) error {
	if o.output == outputJSON {
		view, err := viewOf(index, e)
		if err != nil {
			return err
		}
		return printJSON(p.w, view, "")
	}
	about := "-"
	if r := e.Record.Proposal; r != nil {
		about = r.Namespace + "/" + r.Name
	}
	p.line("%-8d %-25s %-20s %-40s %s", index, e.Record.Time.UTC().Format(time.RFC3339), e.Type, printable(about), printable(gist(e.Record.Data)))
	return p.err
}

// gist says in few words what a record says.
func gist(d audit.Data) string {
	switch d := d.(type) {
	case audit.ProposalAdmitted:
		return d.Tool + " for " + d.Requester.Username
	case audit.PolicyEvaluated:
		return string(d.Decision) + ": " + d.Reason
	case audit.ReceiptAdmitted:
		return d.Receipt.Decision + " by " + d.Receipt.Approver.Username
	case audit.ReceiptConsumed:
		return d.Receipt.Name + " by " + d.Receipt.Approver.Username
	case audit.Dispatched:
		return d.JobName
	case audit.Redeemed:
		return d.PodName
	default:
		return endGist(d)
	}
}

// endGist is gist for the records that a call, batch or session ends with.
func endGist(d audit.Data) string {
	switch d := d.(type) {
	case audit.ProposalRefused:
		return d.Stage + ": " + d.Reason
	case audit.Denied:
		return d.Reason
	case audit.ReceiptRejected:
		return d.Receipt.Name + ": " + d.Reason
	case audit.RedeemRefused:
		return d.Reason
	case audit.ToolCompleted:
		return d.Phase + ": " + d.Reason
	case audit.ProposalEnded:
		return d.Phase + ": " + d.Reason
	case audit.SessionChanged:
		return d.Session.Name + ": " + d.Reason
	default:
		return logGist(d)
	}
}

// logGist is gist for the records that are about the log or the whole cluster.
func logGist(d audit.Data) string {
	switch d := d.(type) {
	case audit.ToolBatchCompleted:
		if d.Complete {
			return d.Batch.ID + ": complete"
		}
		return d.Batch.ID + ": " + d.Reason
	case audit.IntegrityAlarm:
		return d.Reason
	case audit.EpochChanged:
		return fmt.Sprintf("from %d to %d", d.From, d.To)
	case audit.JournalOpened:
		return "version " + d.Software
	case audit.RecordPart:
		return fmt.Sprintf("part %d", d.Number)
	default:
		return ""
	}
}

func newAuditShowCommand(streams Streams) *cobra.Command {
	var o auditOptions
	c := &cobra.Command{
		Use:   "show DIR|URL INDEX --key FILE",
		Short: "Show one record of an audit log",
		Long: "Show one record of an audit log as JSON, after checking its signature and that it is in the tree\n" +
			"that the log's checkpoint signs.",
		Example: "  kubectl assent audit show /var/lib/assent/audit 17 --key assent.pub",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			keys, src, index, err := o.openRecord(args, streams)
			if err != nil {
				return err
			}
			proof, err := verify.Prove(c.Context(), src, keys, o.origin, index)
			if err != nil {
				return refusedProof(err)
			}
			at, err := verify.ParseCheckpoint([]byte(proof.Checkpoint), keys, o.origin)
			if err != nil {
				return refusedProof(err)
			}
			e, err := verify.NewReader(src, keys, at).Entry(c.Context(), index)
			if err != nil {
				return refusedProof(err)
			}
			return o.printRecord(index, e, streams.Out)
		},
	}
	o.addFlags(c)
	return c
}

func (o *auditOptions) openRecord(args []string, streams Streams) (*attest.Keyring, verify.Source, uint64, error) {
	index, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil {
		return nil, nil, 0, errors.New("INDEX must be the number of a record")
	}
	keys, src, err := o.openLog(args[0], streams)
	return keys, src, index, err
}

func (o *auditOptions) printRecord(index uint64, e *audit.Entry, out io.Writer) error {
	view, err := viewOf(index, e)
	if err != nil {
		return err
	}
	indent := "  "
	if o.output == outputJSON {
		indent = ""
	}
	return printJSON(out, view, indent)
}

func newAuditProveCommand(streams Streams) *cobra.Command {
	var o auditOptions
	var check string
	c := &cobra.Command{
		Use:   "prove DIR|URL INDEX --key FILE | prove --check FILE --key FILE",
		Short: "Prove that a record is in an audit log, or check such a proof",
		Long: "Print a proof that a record is in an audit log: the signed record, the signed checkpoint, and the\n" +
			"hashes that lead from one to the other. With --check, check a proof without the log.",
		Example: "  kubectl assent audit prove https://audit.example.com/ 17 --key assent.pub > proof.json\n" +
			"  kubectl assent audit prove --check proof.json --key assent.pub",
		Args: func(c *cobra.Command, args []string) error {
			if check != "" {
				return cobra.NoArgs(c, args)
			}
			return cobra.ExactArgs(2)(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if check != "" {
				return o.checkProof(check, streams)
			}
			keys, src, index, err := o.openRecord(args, streams)
			if err != nil {
				return err
			}
			proof, err := verify.Prove(c.Context(), src, keys, o.origin, index)
			if err != nil {
				return refusedProof(err)
			}
			return printJSON(streams.Out, proof, "")
		},
	}
	o.addFlags(c)
	c.Flags().StringVar(&check, "check", "", "file with a proof to check")
	return c
}

// maxProofBytes bounds a proof file: an entry, a checkpoint, 64 hashes.
const maxProofBytes = 1 << 20

func (o *auditOptions) checkProof(file string, streams Streams) error {
	keys, err := o.keys(streams)
	if err != nil {
		return err
	}
	text, err := readInput(file, maxProofBytes, streams)
	if err != nil {
		return fmt.Errorf("reading the proof: %w", err)
	}
	var proof verify.Proof
	if err := json.Unmarshal(text, &proof); err != nil {
		return fmt.Errorf("reading the proof: %w", err)
	}
	e, err := proof.Verify(keys, o.origin)
	if err != nil {
		return refusedProof(err)
	}
	if e.Parts != nil {
		// The parts are not in the proof: say where they are instead.
		return printJSON(streams.Out, struct {
			Index uint64           `json:"index"`
			Type  audit.RecordType `json:"type"`
			Parts *audit.PartList  `json:"parts"`
		}{proof.Index, e.Type, e.Parts}, "  ")
	}
	return o.printRecord(proof.Index, e, streams.Out)
}

// printJSON writes JSON in which no character can act on a terminal or hide.
func printJSON(out io.Writer, v any, indent string) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(out, visible(b.String()))
	return err
}

// printable makes one line of text safe for a terminal.
func printable(s string) string {
	return visible(strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(s))
}

// visible writes every character that does not show as itself in the form that
// JSON has for it: control, format (bidirectional, zero width), private use
// and line separators, also beyond the first plane.
func visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == ' ' || (unicode.IsGraphic(r) && !unicode.Is(unicode.Zs, r)):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
