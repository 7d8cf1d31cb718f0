// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"

	"github.com/assent-dev/assent/internal/contract"
)

// Formats of tool definitions.
const (
	formatMCP       = "mcp"
	formatOpenAI    = "openai"
	formatAnthropic = "anthropic"
)

// toolDefinitions prints what an agent's model is told about tools.
func (o *schemaOptions) toolDefinitions(w *offline, streams Streams) error {
	var definitions []any
	for _, name := range w.names {
		if o.tool != "" && name != o.tool {
			continue
		}
		d, err := definition(w.contracts[name], o.format)
		if err != nil {
			return err
		}
		definitions = append(definitions, d)
	}
	var out any = definitions
	if o.tool != "" {
		if _, err := w.contract(o.tool); err != nil {
			return err
		}
		out = definitions[0]
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the definitions: %w", err)
	}
	if _, err := streams.Out.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("writing the definitions: %w", err)
	}
	return nil
}

// definition describes one tool. The name is that of the ToolManifest, which is
// what a ToolProposal names.
func definition(c *contract.Contract, format string) (any, error) {
	switch format {
	case formatMCP:
		d := map[string]any{"name": c.Name(), "description": c.Description(), "inputSchema": c.InputSchema()}
		if schema := c.OutputSchema(); schema != nil {
			d["outputSchema"] = schema
		}
		return d, nil
	case formatOpenAI:
		return map[string]any{"type": "function", "function": map[string]any{
			"name": c.Name(), "description": c.Description(), "parameters": c.InputSchema(),
		}}, nil
	case formatAnthropic:
		return map[string]any{"name": c.Name(), "description": c.Description(), "input_schema": c.InputSchema()}, nil
	default:
		return nil, fmt.Errorf("format must be %s, %s or %s, not %q", formatMCP, formatOpenAI, formatAnthropic, format)
	}
}
