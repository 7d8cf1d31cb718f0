// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"unicode/utf8"

	"github.com/cedar-policy/cedar-go/types"

	"github.com/assent-dev/assent/snapshot"
)

// convertEffect checks an effect, and gives the one part of it whose conversion
// can fail: the arguments of an MCP tool, or nothing.
func (t *toolTypes) convertEffect(e *EffectView) (types.Value, error) {
	switch {
	case e.Kind != t.tool.EffectKind:
		return types.Record{}, errEffect
	case e.Kind == EffectCommand:
		return types.Record{}, checkWords(e.Argv)
	case e.Kind == EffectMCP:
		return t.mcpArguments(e.MCPArgumentsJSON)
	case e.Kind == EffectHTTP:
		return types.Record{}, nil
	default:
		return types.Record{}, errEffect
	}
}

// resolvedRecord builds context.invocation.resolved: what happens when the call runs.
func resolvedRecord(e *EffectView, mcpArguments types.Value) types.Record {
	values := types.RecordMap{
		"kind":         types.String(e.Kind),
		"secret_names": stringSet(e.SecretNames),
	}
	switch e.Kind {
	case EffectCommand:
		values["argv"] = stringSet(e.Argv)
		values["argv_json"] = stringsJSON(e.Argv)
		values["image"] = types.String(e.Image)
		values["working_dir"] = types.String(e.WorkingDir)
		values["env_names"] = stringSet(e.EnvNames)
	case EffectHTTP:
		values["http_url"] = types.String(e.HTTPURL)
		values["http_method"] = types.String(e.HTTPMethod)
		values["http_host"] = types.String(e.HTTPHost)
		values["http_body"] = types.String(e.HTTPBody)
	case EffectMCP:
		values["mcp_server"] = types.String(e.MCPServer)
		values["mcp_tool"] = types.String(e.MCPTool)
		values["mcp_arguments"] = mcpArguments
		values["mcp_arguments_json"] = types.String(e.MCPArgumentsJSON)
	}
	return types.NewRecord(values)
}

const errEffect unrepresentable = "the effect is not of the kind that the contract declares; prepare the call again"

func (t *toolTypes) mcpArguments(text string) (types.Value, error) {
	snap, err := snapshot.Parse(text)
	if err != nil {
		return nil, err
	}
	tree, ok := snap.View().(map[string]any)
	if !ok {
		return nil, errNotObject
	}
	return t.mcp.record(tree)
}

func stringSet(list []string) types.Set {
	if len(list) == 0 {
		return types.Set{}
	}
	values := make([]types.Value, 0, len(list))
	for _, one := range list {
		values = append(values, types.String(one))
	}
	return types.NewSet(values...)
}

// checkWords refuses words that stringsJSON could not write.
func checkWords(list []string) error {
	for _, one := range list {
		if !utf8.ValidString(one) {
			return errNotUTF8
		}
	}
	return nil
}

// stringsJSON gives the words in their order, as canonical JSON (RFC 8785
// section 3.2.2.2). It is written here because each decision needs it and the
// general way costs as much as all policies of a tool.
func stringsJSON(list []string) types.String {
	text := make([]byte, 0, 64)
	text = append(text, '[')
	for i, one := range list {
		if i > 0 {
			text = append(text, ',')
		}
		text = appendQuoted(text, one)
	}
	return types.String(append(text, ']'))
}

func appendQuoted(to []byte, text string) []byte {
	to = append(to, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			to = append(to, '\\', c)
		case c >= 0x20:
			to = append(to, c)
		case strings.IndexByte("\b\t\n\f\r", c) >= 0:
			to = append(to, '\\', "btnvfr"[c-'\b'])
		default:
			to = append(to, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(to, '"')
}

const hexDigits = "0123456789abcdef"
