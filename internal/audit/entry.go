// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/attest"
)

const (
	// maxInlineBytes is how long the data text of a record may be to stay in
	// the record's own entry. An entry holds 65535 bytes, of which base64 takes
	// a quarter.
	maxInlineBytes = 32 << 10
	// partBytes is how much of a larger text goes into one part.
	partBytes = 30 << 10
	// MaxDataBytes bounds the data text of one record, in bytes. It is larger
	// than any call that fits into a Kubernetes object.
	MaxDataBytes = 4 << 20
	// maxParts follows from the two.
	maxParts = (MaxDataBytes + partBytes - 1) / partBytes

	// subjectName is informative; see the in-toto statement specification.
	subjectName = "assent-audit-record"
)

// wireRecord is the predicate of an audit record.
type wireRecord struct {
	Type        RecordType        `json:"type"`
	ID          string            `json:"id"`
	Time        time.Time         `json:"time"`
	Position    Position          `json:"position"`
	Proposal    *attest.ObjectRef `json:"proposal,omitzero"`
	Fingerprint string            `json:"fingerprint,omitzero"`
	TraceID     string            `json:"traceID,omitzero"`
	// Exactly one of Data and Parts is present.
	Data  jsontext.Value `json:"data,omitzero"`
	Parts *PartList      `json:"parts,omitzero"`
}

// PartList says where the data of a large record is.
type PartList struct {
	// SHA256 and Bytes are digest (hex) and length of the whole text.
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	// Indexes are the entries that hold the parts, in order. All are smaller
	// than the record's own index.
	Indexes []uint64 `json:"indexes"`
}

// Draft is a record that was checked and encoded but has no place yet.
type Draft struct {
	record Record
	text   []byte
}

// NewDraft checks a record, which must have an ID. Errors wrap
// [ErrInvalidRecord].
func NewDraft(r Record) (*Draft, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	if r.ID == "" {
		return nil, fmt.Errorf("%w: id must be set", ErrInvalidRecord)
	}
	text, err := attest.Encode(r.Data)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInvalidRecord, r.Type(), err)
	}
	if len(text) > MaxDataBytes {
		return nil, fmt.Errorf("%w: %s: its data has more than %d bytes", ErrInvalidRecord, r.Type(), MaxDataBytes)
	}
	return &Draft{record: r, text: text}, nil
}

// Parts returns the data of the records that must be in the log before this
// one. There are none for a record of ordinary size, and a part has no parts.
func (d *Draft) Parts() []RecordPart {
	if len(d.text) <= maxInlineBytes || d.record.Type() == TypeRecordPart {
		return nil
	}
	sum := sha256.Sum256(d.text)
	var parts []RecordPart
	for rest := d.text; len(rest) > 0; {
		n := min(len(rest), partBytes)
		parts = append(parts, RecordPart{SHA256: hex.EncodeToString(sum[:]), Number: uint64(len(parts)), Bytes: rest[:n]})
		rest = rest[n:]
	}
	return parts
}

// Seal signs the record for its place and returns the entry for the log.
// partIndexes are the indexes of the parts, in the order of [Draft.Parts].
func (d *Draft) Seal(k *attest.Keyring, at Position, partIndexes []uint64) (string, error) {
	w := wireRecord{
		Type: d.record.Type(), ID: d.record.ID, Time: d.record.Time, Position: at,
		Proposal: d.record.Proposal, Fingerprint: d.record.Fingerprint, TraceID: d.record.TraceID,
	}
	if len(partIndexes) == 0 {
		w.Data = d.text
	} else {
		sum := sha256.Sum256(d.text)
		w.Parts = &PartList{SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(d.text)), Indexes: partIndexes}
	}
	subject, err := w.subject()
	if err != nil {
		return "", fmt.Errorf("%w: %s: %w", ErrInvalidRecord, w.Type, err)
	}
	entry, err := k.Sign(attest.KindAuditRecord, subjectName, subject, w)
	if err != nil {
		return "", fmt.Errorf("%w: %s: %w", ErrInvalidRecord, w.Type, err)
	}
	return entry, nil
}

func (w wireRecord) subject() (string, error) {
	if w.Fingerprint != "" {
		return w.Fingerprint, nil
	}
	text, err := attest.Encode(w)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// Entry is a record read back from the log.
type Entry struct {
	Record Record
	// Parts is set when the data is in other entries; Record.Data is nil until
	// [Entry.Join].
	Parts *PartList
	// Type is known even while the data is elsewhere.
	Type RecordType
	// KeyID is the key that signed the record.
	KeyID string
}

// OpenEntry verifies one entry of the log and reads its record. Errors are
// *[attest.VerifyError].
func OpenEntry(k *attest.Keyring, entry string) (*Entry, error) {
	var w wireRecord
	signed, err := k.Open(attest.KindAuditRecord, entry, &w)
	if err != nil {
		return nil, err
	}
	subject, err := w.subject()
	if err != nil || signed.SHA256 != subject || signed.Name != subjectName {
		return nil, malformed(attest.ReasonWrongSubject, "the subject is not the record's")
	}
	e := &Entry{
		Record: Record{
			ID: w.ID, Time: w.Time, Proposal: w.Proposal, Fingerprint: w.Fingerprint,
			TraceID: w.TraceID, Position: w.Position,
		},
		Parts: w.Parts, Type: w.Type, KeyID: signed.KeyID,
	}
	if err := w.checkShape(); err != nil {
		return nil, malformed(attest.ReasonMalformed, err.Error())
	}
	if w.Parts != nil {
		return e, nil
	}
	if err := e.setData(w.Data); err != nil {
		return nil, err
	}
	return e, nil
}

func (w wireRecord) checkShape() error {
	var c checks
	c.require(isHex(w.ID, 32), "id", "must be 32 lower-case hex digits")
	c.require(w.Position.Log != "", "position.log", "must be set")
	c.require(isHex(w.Position.Writer, 32), "position.writer", "must be 32 lower-case hex digits")
	c.require(zeroData(w.Type) != nil, "type", "is not a known type of record")
	c.require((w.Data != nil) != (w.Parts != nil), "data", "must be present, here or in parts")
	if p := w.Parts; p != nil {
		c.digest("parts.sha256", p.SHA256)
		c.require(p.Bytes > maxInlineBytes && p.Bytes <= MaxDataBytes, "parts.bytes", "is out of range")
		c.require(int64(len(p.Indexes)) == (p.Bytes+partBytes-1)/partBytes, "parts.indexes", "do not match the length")
		c.require(w.Type != TypeRecordPart, "parts", "may not have parts")
	}
	return c.err
}

func (e *Entry) setData(text []byte) error {
	out := reflect.New(reflect.TypeOf(zeroData(e.Type)))
	if err := attest.Decode(string(e.Type), text, MaxDataBytes, out.Interface()); err != nil {
		return err
	}
	e.Record.Data = out.Elem().Interface().(Data)
	if err := e.Record.Check(); err != nil {
		e.Record.Data = nil
		return malformed(attest.ReasonMalformed, err.Error())
	}
	return nil
}

// errParts is the cause when the parts of a record do not make up its data.
var errParts = errors.New("the parts are not those of the record")

// Join puts the data of a large record together from its parts, given in the
// order of Parts.Indexes. Errors are *[attest.VerifyError].
func (e *Entry) Join(parts []*Entry) error {
	if e.Parts == nil || len(parts) != len(e.Parts.Indexes) {
		return malformed(attest.ReasonMalformed, errParts.Error())
	}
	text := make([]byte, 0, e.Parts.Bytes)
	for i, part := range parts {
		data, ok := part.Record.Data.(RecordPart)
		if !ok || data.SHA256 != e.Parts.SHA256 || data.Number != uint64(i) {
			return malformed(attest.ReasonMalformed, errParts.Error())
		}
		text = append(text, data.Bytes...)
	}
	sum := sha256.Sum256(text)
	if hex.EncodeToString(sum[:]) != e.Parts.SHA256 || int64(len(text)) != e.Parts.Bytes {
		return malformed(attest.ReasonMalformed, errParts.Error())
	}
	return e.setData(text)
}

func malformed(reason attest.VerifyReason, detail string) error {
	return &attest.VerifyError{Reason: reason, What: string(attest.KindAuditRecord), Detail: detail}
}
