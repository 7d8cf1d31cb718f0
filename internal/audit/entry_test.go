// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/audit"
)

func TestRecord_RoundTripsEveryType(t *testing.T) {
	seen := map[audit.RecordType]bool{}
	for _, data := range sampleData() {
		want := sampleRecord(data)
		seen[want.Type()] = true
		if got := reflect.TypeOf(data).Name(); got != string(want.Type()) {
			t.Errorf("structure %s has type %s", got, want.Type())
		}
		e, err := audit.OpenEntry(keys(t, 1), seal(t, want, position(9), nil))
		if err != nil {
			t.Errorf("%s: %v", want.Type(), err)
			continue
		}
		want.Position = position(9)
		if diff := cmp.Diff(want, e.Record); diff != "" {
			t.Errorf("%s:\n%s", want.Type(), diff)
		}
		if e.Type != want.Type() || e.KeyID != keys(t, 1).SigningKeyID() || e.Parts != nil {
			t.Errorf("%s: entry %+v", want.Type(), e)
		}
	}
	for _, typ := range audit.AllTypes() {
		if !seen[typ] {
			t.Errorf("no sample of type %s", typ)
		}
	}
	if len(seen) != len(audit.AllTypes()) {
		t.Errorf("%d samples, %d types", len(seen), len(audit.AllTypes()))
	}
}

func TestRecord_HasItsFingerprintAsSubjectOrItsOwnDigest(t *testing.T) {
	k := keys(t, 1)
	data := audit.Denied{Reason: "Forbidden"}
	with := seal(t, sampleRecord(data), position(1), nil)
	var ignored map[string]any
	subject, err := k.Open(attest.KindAuditRecord, with, &ignored)
	// A map of any cannot be encoded back (numbers), so only structures open.
	if err == nil {
		t.Fatalf("opened into a map: %+v", subject)
	}
	r := sampleRecord(data)
	r.Fingerprint = ""
	a, b := seal(t, r, position(1), nil), seal(t, r, position(2), nil)
	subjects := map[string]bool{}
	for _, entry := range []string{with, a, b} {
		s := subjectOf(t, entry)
		subjects[s] = true
	}
	if len(subjects) != 3 || !subjects[digestOf("fingerprint")] {
		t.Errorf("subjects %v", subjects)
	}
}

// subjectOf reads a subject with the structure of the record's own JSON.
func subjectOf(t *testing.T, entry string) string {
	t.Helper()
	var shape struct {
		Type     string `json:"type"`
		ID       string `json:"id"`
		Time     string `json:"time"`
		Position struct {
			Log    string `json:"log"`
			Writer string `json:"writer"`
			Seq    int64  `json:"seq"`
		} `json:"position"`
		Proposal struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
			UID       string `json:"uid"`
		} `json:"proposal"`
		Fingerprint string `json:"fingerprint,omitempty"`
		TraceID     string `json:"traceID"`
		Data        struct {
			Reason   string   `json:"reason"`
			Policies []string `json:"policies"`
		} `json:"data"`
	}
	s, err := keys(t, 1).Open(attest.KindAuditRecord, entry, &shape)
	if err != nil {
		t.Fatal(err)
	}
	return s.SHA256
}

func TestRecord_ChecksItsOwnFields(t *testing.T) {
	long := strings.Repeat("x", 254)
	tests := map[string]struct {
		edit func(*audit.Record)
		want string
	}{
		"no data":             {func(r *audit.Record) { r.Data = nil }, ": data must be set"},
		"an ID that is none":  {func(r *audit.Record) { r.ID = "x" }, "Denied: id must be empty or 32 lower-case hex digits"},
		"no ID at all":        {func(r *audit.Record) { r.ID = "" }, "id must be set"},
		"no time":             {func(r *audit.Record) { r.Time = time.Time{} }, "Denied: time must be set"},
		"a short fingerprint": {func(r *audit.Record) { r.Fingerprint = "ab" }, "Denied: fingerprint must be empty or 64 lower-case hex digits"},
		"an upper-case one":   {func(r *audit.Record) { r.Fingerprint = strings.Repeat("A", 64) }, "Denied: fingerprint must be empty or 64 lower-case hex digits"},
		"a long trace ID":     {func(r *audit.Record) { r.TraceID = long }, "Denied: traceID is too long"},
		"no namespace":        {func(r *audit.Record) { r.Proposal.Namespace = "" }, "Denied: proposal.namespace must have 1 to 253 bytes"},
		"no name":             {func(r *audit.Record) { r.Proposal.Name = "" }, "Denied: proposal.name must have 1 to 253 bytes"},
		"a long UID":          {func(r *audit.Record) { r.Proposal.UID = long }, "Denied: proposal.uid must have 1 to 253 bytes"},
		"bad data":            {func(r *audit.Record) { r.Data = audit.Denied{} }, "Denied: reason must have 1 to 1024 bytes"},
		"text that is no UTF-8": {
			func(r *audit.Record) { r.Data = audit.Denied{Reason: "\xff"} },
			"Denied: encoding audit.Denied: a member cannot be represented in JSON (text that is not valid UTF-8?)",
		},
		"too much data": {func(r *audit.Record) {
			r.Data = audit.IntegrityAlarm{Reason: "x", Objects: []string{strings.Repeat("x", audit.MaxDataBytes)}}
		}, "IntegrityAlarm: its data has more than 4194304 bytes"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := sampleRecord(audit.Denied{Reason: "Forbidden"})
			tc.edit(&r)
			_, err := audit.NewDraft(r)
			if !errors.Is(err, audit.ErrInvalidRecord) || !strings.HasSuffix(err.Error(), tc.want) {
				t.Errorf("error %v, want one ending in %q", err, tc.want)
			}
		})
	}
}

func TestDraft_SealRefusesWhatCannotBeSigned(t *testing.T) {
	r := sampleRecord(audit.Denied{Reason: "Forbidden"})
	r.Fingerprint, r.TraceID = "", "\xff"
	draft, err := audit.NewDraft(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := draft.Seal(keys(t, 1), position(0), nil); !errors.Is(err, audit.ErrInvalidRecord) {
		t.Errorf("without a fingerprint: %v", err)
	}
	r.Fingerprint = digestOf("f")
	if draft, err = audit.NewDraft(r); err != nil {
		t.Fatal(err)
	}
	if _, err := draft.Seal(keys(t, 1), position(0), nil); !errors.Is(err, audit.ErrInvalidRecord) {
		t.Errorf("with a fingerprint: %v", err)
	}
}

// large returns data whose text has about n bytes.
func large(n int) audit.IntegrityAlarm {
	var objects []string
	for len(objects)*1003 < n {
		objects = append(objects, fmt.Sprintf("%01000d", len(objects)))
	}
	return audit.IntegrityAlarm{Reason: "EnforcementDrift", Objects: objects}
}

// split seals a large record and its parts, the parts at indexes from 10.
func split(t *testing.T, data audit.Data) (head *audit.Entry, parts []*audit.Entry) {
	t.Helper()
	r := sampleRecord(data)
	draft, err := audit.NewDraft(r)
	if err != nil {
		t.Fatal(err)
	}
	var indexes []uint64
	for i, part := range draft.Parts() {
		entry := seal(t, audit.Record{ID: idOf(fmt.Sprint(i)), Time: at, Data: part}, position(uint64(i)), nil)
		e, err := audit.OpenEntry(keys(t, 1), entry)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, e)
		indexes = append(indexes, uint64(10+i))
	}
	head, err = audit.OpenEntry(keys(t, 1), seal(t, r, position(99), indexes))
	if err != nil {
		t.Fatal(err)
	}
	return head, parts
}

func TestEntry_JoinsLargeRecords(t *testing.T) {
	for _, size := range []int{40 << 10, 100 << 10, audit.MaxDataBytes - 2000} {
		want := large(size)
		head, parts := split(t, want)
		if head.Parts == nil || head.Record.Data != nil || head.Type != audit.TypeIntegrityAlarm {
			t.Fatalf("%d bytes: not in parts", size)
		}
		if got := head.Parts.Indexes[0]; got != 10 || len(head.Parts.Indexes) != len(parts) {
			t.Errorf("%d bytes: indexes %v", size, head.Parts.Indexes)
		}
		if err := head.Join(parts); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if diff := cmp.Diff(audit.Data(want), head.Record.Data); diff != "" {
			t.Errorf("%d bytes: data changed", size)
		}
	}
}

func TestEntry_JoinRefusesOtherParts(t *testing.T) {
	_, foreign := split(t, audit.IntegrityAlarm{Reason: "Other", Objects: large(80 << 10).Objects})
	small, err := audit.OpenEntry(keys(t, 1), seal(t, sampleRecord(audit.Denied{Reason: "x"}), position(1), nil))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]func([]*audit.Entry) []*audit.Entry{
		"none":                   func([]*audit.Entry) []*audit.Entry { return nil },
		"one missing":            func(p []*audit.Entry) []*audit.Entry { return p[1:] },
		"two exchanged":          func(p []*audit.Entry) []*audit.Entry { p[0], p[1] = p[1], p[0]; return p },
		"one of another record":  func(p []*audit.Entry) []*audit.Entry { p[1] = foreign[1]; return p },
		"one that is no part":    func(p []*audit.Entry) []*audit.Entry { p[1] = small; return p },
		"one with other content": func(p []*audit.Entry) []*audit.Entry { p[1] = relabelled(t, p[0], 1); return p },
	}
	for name, edit := range tests {
		head, parts := split(t, large(80<<10))
		err := head.Join(edit(parts))
		if attest.ReasonOf(err) != attest.ReasonMalformed || head.Record.Data != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := small.Join(nil); attest.ReasonOf(err) != attest.ReasonMalformed {
		t.Errorf("a record without parts: %v", err)
	}
}

// relabelled gives the content of a part another number.
func relabelled(t *testing.T, e *audit.Entry, number uint64) *audit.Entry {
	t.Helper()
	part := e.Record.Data.(audit.RecordPart)
	part.Number = number
	out, err := audit.OpenEntry(keys(t, 1), seal(t, audit.Record{ID: idOf("x"), Time: at, Data: part}, position(5), nil))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEntry_JoinChecksTheJoinedData(t *testing.T) {
	// The text is that of one type, the record says another.
	text, err := attest.Encode(large(80 << 10))
	if err != nil {
		t.Fatal(err)
	}
	draft, err := audit.NewDraft(sampleRecord(large(80 << 10)))
	if err != nil {
		t.Fatal(err)
	}
	_, parts := split(t, large(80<<10))
	w := wire()
	w.Type, w.Data = "Denied", nil
	w.Parts = &audit.PartList{SHA256: draft.Parts()[0].SHA256, Bytes: int64(len(text)), Indexes: []uint64{1, 2, 3}}
	e, err := audit.OpenEntry(keys(t, 1), sign(t, w))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Join(parts); attest.ReasonOf(err) != attest.ReasonUnknownField {
		t.Errorf("error %v", err)
	}
}

// wireRecord repeats the JSON form of a record, to write ones that Seal never
// would.
type wireRecord struct {
	Type        string          `json:"type"`
	ID          string          `json:"id"`
	Time        time.Time       `json:"time"`
	Position    audit.Position  `json:"position"`
	Fingerprint string          `json:"fingerprint,omitempty"`
	Data        any             `json:"data,omitzero"`
	Parts       *audit.PartList `json:"parts,omitzero"`
}

func wire() wireRecord {
	return wireRecord{
		Type: "Denied", ID: idOf("record"), Time: at, Position: position(1), Fingerprint: digestOf("fingerprint"),
		Data: audit.Denied{Reason: "Forbidden", Policies: []string{}},
	}
}

func sign(t *testing.T, w any) string {
	t.Helper()
	entry, err := keys(t, 1).Sign(attest.KindAuditRecord, "assent-audit-record", digestOf("fingerprint"), w)
	if err != nil {
		t.Fatal(err)
	}
	return entry
}

func TestOpenEntry_RefusesSignedNonsense(t *testing.T) {
	parts := func(edit func(*audit.PartList)) *audit.PartList {
		p := &audit.PartList{SHA256: digestOf("whole"), Bytes: 40 << 10, Indexes: []uint64{1, 2}}
		edit(p)
		return p
	}
	with := func(edit func(*wireRecord)) string { w := wire(); edit(&w); return sign(t, w) }
	inParts := func(edit func(*audit.PartList)) string {
		return with(func(w *wireRecord) { w.Data, w.Parts = nil, parts(edit) })
	}
	other, err := keys(t, 1).Sign(attest.KindAuditRecord, "other", digestOf("fingerprint"), wire())
	if err != nil {
		t.Fatal(err)
	}
	const m, u, s = attest.ReasonMalformed, attest.ReasonUnknownField, attest.ReasonWrongSubject
	tests := map[string]struct {
		entry string
		want  attest.VerifyReason
	}{
		"valid, as the control":           {with(func(*wireRecord) {}), ""},
		"in parts, as the control":        {inParts(func(*audit.PartList) {}), ""},
		"another subject":                 {with(func(w *wireRecord) { w.Fingerprint = digestOf("other") }), s},
		"no fingerprint, foreign subject": {with(func(w *wireRecord) { w.Fingerprint = "" }), s},
		"another subject name":            {other, s},
		"an unknown type":                 {with(func(w *wireRecord) { w.Type = "Allowed" }), m},
		"data of another type":            {with(func(w *wireRecord) { w.Type = "EpochChanged" }), u},
		"data with an unknown member":     {with(func(w *wireRecord) { w.Data = map[string]any{"policies": []string{}, "reason": "x", "x": "y"} }), u},
		"data with a missing member":      {with(func(w *wireRecord) { w.Data = map[string]any{"reason": "x"} }), m},
		"data that breaks a rule":         {with(func(w *wireRecord) { w.Data = audit.Denied{Policies: []string{}} }), m},
		"data that is null":               {sign(t, map[string]any{"type": "Denied", "id": idOf("r"), "time": at, "position": position(1), "fingerprint": digestOf("fingerprint"), "data": nil}), m},
		"neither data nor parts":          {with(func(w *wireRecord) { w.Data = nil }), m},
		"both data and parts":             {with(func(w *wireRecord) { w.Parts = parts(func(*audit.PartList) {}) }), m},
		"an ID that is none":              {with(func(w *wireRecord) { w.ID = "" }), m},
		"no time":                         {with(func(w *wireRecord) { w.Time = time.Time{} }), m},
		"no log":                          {with(func(w *wireRecord) { w.Position.Log = "" }), m},
		"a writer that is none":           {with(func(w *wireRecord) { w.Position.Writer = "w" }), m},
		"a negative number":               {sign(t, map[string]any{"type": "Denied", "id": idOf("r"), "time": at, "position": map[string]any{"log": "l", "writer": idOf("w"), "seq": int64(-1)}, "fingerprint": digestOf("fingerprint"), "data": audit.Denied{Reason: "x", Policies: []string{}}}), m},
		"parts without a digest":          {inParts(func(p *audit.PartList) { p.SHA256 = "" }), m},
		"parts of a small record":         {inParts(func(p *audit.PartList) { p.Bytes = 32 << 10 }), m},
		"parts of too large a record":     {inParts(func(p *audit.PartList) { p.Bytes = audit.MaxDataBytes + 1 }), m},
		"too few parts":                   {inParts(func(p *audit.PartList) { p.Indexes = p.Indexes[1:] }), m},
		"a part in parts":                 {with(func(w *wireRecord) { w.Type, w.Data, w.Parts = "RecordPart", nil, parts(func(*audit.PartList) {}) }), m},
		"not an envelope":                 {"{}", attest.ReasonWrongType},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e, err := audit.OpenEntry(keys(t, 1), tc.entry)
			if got := attest.ReasonOf(err); got != tc.want {
				t.Fatalf("reason %q (%v), want %q", got, err, tc.want)
			}
			if err != nil && e != nil {
				t.Error("a refused entry was returned")
			}
		})
	}
}

// TestEntry_AlwaysFits holds the worst cases against the limit of one entry.
func TestEntry_AlwaysFits(t *testing.T) {
	long := strings.Repeat("\u0001", 253)
	r := sampleRecord(nil)
	r.Proposal = &attest.ObjectRef{Namespace: long, Name: long, UID: long}
	r.TraceID = long[:128]
	// The longest text that stays inline, and the largest part.
	r.Data = audit.IntegrityAlarm{Reason: "x", Objects: []string{strings.Repeat("x", 32<<10-len(`{"objects":[""],"reason":"x"}`))}}
	draft, err := audit.NewDraft(r)
	if err != nil {
		t.Fatal(err)
	}
	if draft.Parts() != nil {
		t.Error("a text of 32 KiB is not inline")
	}
	pos := audit.Position{Log: strings.Repeat("l", 253), Writer: idOf("w"), Seq: 1<<53 - 1}
	if _, err := draft.Seal(keys(t, 1), pos, nil); err != nil {
		t.Error(err)
	}
	r.Data = audit.IntegrityAlarm{Reason: "x", Objects: []string{strings.Repeat("x", 32<<10-len(`{"objects":[""],"reason":"x"}`)+1)}}
	if draft, err = audit.NewDraft(r); err != nil {
		t.Fatal(err)
	}
	parts := draft.Parts()
	if len(parts) != 2 || len(parts[0].Bytes) != 30<<10 {
		t.Fatalf("%d parts", len(parts))
	}
	seal(t, audit.Record{ID: idOf("p"), Time: at, Data: parts[0]}, pos, nil)
	// A record with the largest number of parts.
	indexes := make([]uint64, (audit.MaxDataBytes+30<<10-1)/(30<<10))
	for i := range indexes {
		indexes[i] = 1<<53 - 1
	}
	if _, err := draft.Seal(keys(t, 1), pos, indexes); err != nil {
		t.Error(err)
	}
}
