// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cedar-policy/cedar-go/types"

	"github.com/assent-dev/assent/snapshot"
)

// The entity types of section 7 of the design; those of principals are the ones
// that Cedar's access control for Kubernetes uses.
const (
	typeServiceAccount types.EntityType = "k8s::ServiceAccount"
	typeUser           types.EntityType = "k8s::User"
	typeGroup          types.EntityType = "k8s::Group"
	typeTool           types.EntityType = "Tool"
	typeAction         types.EntityType = "Action"
)

const serviceAccountPrefix = "system:serviceaccount:"

// request is a call in Cedar's terms. Cedar values cannot be changed, so that
// one request serves all evaluations; it belongs to one goroutine.
type request struct {
	// principal has its attributes once a policy has asked for the entity; so
	// has tool, the entity of the resource.
	principal types.Entity
	tool      types.Entity
	action    types.EntityUID
	resource  types.EntityUID
	// invocation and session are context.invocation and, if hasSession,
	// context.session. read is which parts of the context are there.
	invocation types.Record
	session    types.Record
	hasSession bool
	read       reads
	built      bool

	prepared *prepared
}

// Get gives the entities of the request: the principal and the resource.
func (r *request) Get(uid types.EntityUID) (types.Entity, bool) {
	switch uid {
	case r.principal.UID:
		if r.principal.Attributes.Len() == 0 {
			r.principal.Attributes = principalAttributes(uid)
		}
		return r.principal, true
	case r.resource:
		if r.tool.Attributes.Len() == 0 {
			r.tool = types.Entity{UID: uid, Attributes: r.prepared.tool.attributes(r.prepared.call)}
		}
		return r.tool, true
	default:
		return types.Entity{}, false
	}
}

// refusal is why a call cannot be put before policies at all.
type refusal struct {
	reason  Reason
	message string
}

// Error gives the message.
func (r *refusal) Error() string { return r.message }

// newRequest translates a call. The errors are refusals; what narrow does later
// cannot fail. The arguments are a
// fresh and strict decode of the frozen text; that the text is canonical, and
// the one that was sealed, is for those to check who hand it in.
func newRequest(call *Call, tool *toolTypes) (*request, error) {
	view, err := snapshot.DecodeText(call.ArgsCanonicalJSON)
	if err != nil {
		return nil, &refusal{ReasonNotRepresentable, fmt.Sprintf("tool %s: %v", tool.label(), err)}
	}
	if tool.problem != "" {
		return nil, &refusal{ReasonNotRepresentable, fmt.Sprintf("tool %s: %s", tool.label(), tool.problem)}
	}
	prepared, err := tool.prepare(call, view)
	if err != nil {
		return nil, err
	}
	r := &request{
		principal:  principalEntity(call.Principal),
		action:     tool.action,
		resource:   tool.resource,
		hasSession: call.HasSession,
		prepared:   prepared,
	}
	if call.HasSession {
		if r.session, err = sessionRecord(call.SessionContext); err != nil {
			return nil, &refusal{ReasonContextInvalid, fmt.Sprintf("the session's context: %v", err)}
		}
	}
	return r, nil
}

// narrow makes the invocation with what these policies can observe, and nothing
// more: afterwards, the request is good for them alone.
func (r *request) narrow(policies []*statement) {
	var read reads
	for _, s := range policies {
		read |= s.reads
	}
	r.build(read)
}

func (r *request) build(read reads) {
	r.read, r.built = read, true
	r.invocation = r.prepared.invocation(read)
}

// evaluation gives the request with the facts about approval. They come from
// receipts alone; the text is empty, never absent, so that a policy can compare
// it without a test. A request that was not narrowed serves every policy.
func (r *request) evaluation(approved bool, fingerprint string) types.Request {
	if !approved {
		fingerprint = ""
	}
	if !r.built {
		r.build(readsAll)
	}
	context := types.RecordMap{"invocation": r.invocation}
	if r.read&readApproval != 0 {
		context["has_human_approval"] = types.Boolean(approved)
		context["approved_fingerprint"] = types.String(fingerprint)
	}
	if r.hasSession {
		context["session"] = r.session
	}
	return types.Request{
		Principal: r.principal.UID, Action: r.action, Resource: r.resource,
		Context: types.NewRecord(context),
	}
}

// principalEntity maps an authenticated user, without attributes. Only the exact form that
// Kubernetes gives to ServiceAccounts becomes one.
func principalEntity(p Principal) types.Entity {
	uid := types.NewEntityUID(typeUser, types.String(p.Username))
	if _, _, ok := serviceAccount(p.Username); ok {
		uid.Type = typeServiceAccount
	}
	groups := make([]types.EntityUID, 0, len(p.Groups))
	for _, group := range p.Groups {
		groups = append(groups, types.NewEntityUID(typeGroup, types.String(group)))
	}
	return types.Entity{UID: uid, Parents: types.NewEntityUIDSet(groups...)}
}

// principalAttributes are made when a policy asks for them; there is always one.
func principalAttributes(uid types.EntityUID) types.Record {
	if namespace, name, ok := serviceAccount(string(uid.ID)); ok {
		return types.NewRecord(types.RecordMap{"name": types.String(name), "namespace": types.String(namespace)})
	}
	return types.NewRecord(types.RecordMap{"name": uid.ID})
}

func serviceAccount(username string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(username, serviceAccountPrefix)
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, ":")
	return namespace, name, ok && namespace != "" && name != "" && !strings.Contains(name, ":")
}

// maxSessionBytes bounds the trusted context of a session, in bytes.
const maxSessionBytes = 16 << 10

// sessionRecord reads the trusted context of a session. Invalid context is an
// error, never an empty record: a forbid might rest on it.
func sessionRecord(text string) (types.Record, error) {
	if text == "" {
		return types.Record{}, nil
	}
	if len(text) > maxSessionBytes {
		return types.Record{}, errTooLong
	}
	tree, err := snapshot.Decode(text)
	if err != nil {
		return types.Record{}, err
	}
	if _, ok := tree.(map[string]any); !ok {
		return types.Record{}, errNotObject
	}
	value, err := (&shape{}).value(tree)
	if err != nil {
		return types.Record{}, err
	}
	record, _ := value.(types.Record)
	return record, nil
}

// asRefusal gives the refusal in an error of newRequest.
func asRefusal(err error) *refusal {
	var r *refusal
	errors.As(err, &r)
	return r
}
