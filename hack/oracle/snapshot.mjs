// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// The snapshot scheme of docs/snapshot.md once more, in another language and
// without any library: a second opinion for the Go package. Go's JSON libraries
// share strconv and unicode/utf8, so comparing them with each other cannot see a
// fault there; V8 converts numbers with code of its own.
//
// It reads one JSON object per line and answers each with one line:
//
//   {"input_base64"}                 -> {"accept","canonical","digest"}
//   {"agent","tool","arguments"}     -> {"hash"}          proposalHash
//   {"kind","members_base64"}        -> {"canonical","hash"}
//
// The names of the first form are those of testdata/json_vectors.json.

import { createHash } from "node:crypto";
import { createInterface } from "node:readline";

const argumentLimits = { bytes: 64 * 1024, values: 4096, stringBytes: 32 * 1024 };
const recordLimits = { bytes: 4 << 20, values: 256 * 1024, stringBytes: 1 << 20 };
const maxDepth = 64;
const maxNumber = 800;

class Refused extends Error {}

// Reader is a recursive descent parser of RFC 8259 over UTF-16 code units.
class Reader {
  constructor(text, limits) {
    this.text = text;
    this.at = 0;
    this.depth = 0;
    this.values = 0;
    this.limits = limits;
  }

  white() {
    while (" \t\n\r".includes(this.text[this.at] ?? "x")) this.at++;
  }

  expect(c) {
    if (this.text[this.at] !== c) throw new Refused("expected " + c);
    this.at++;
  }

  document() {
    const tree = this.value();
    this.white();
    if (this.at !== this.text.length) throw new Refused("trailing data");
    return tree;
  }

  value() {
    this.white();
    const c = this.text[this.at];
    if (c === "{") return this.nested(() => this.object());
    if (c === "[") return this.nested(() => this.array());
    if (c === '"') return this.string();
    for (const [word, value] of [["null", null], ["true", true], ["false", false]]) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return value;
      }
    }
    return this.number();
  }

  nested(read) {
    if (++this.depth > maxDepth) throw new Refused("depth");
    this.at++;
    const container = read();
    this.depth--;
    return container;
  }

  count() {
    if (++this.values > this.limits.values) throw new Refused("values");
  }

  // list reads elements up to the closing character.
  list(close, element) {
    this.white();
    if (this.text[this.at] === close) {
      this.at++;
      return;
    }
    for (;;) {
      this.count();
      element();
      this.white();
      if (this.text[this.at] === close) {
        this.at++;
        return;
      }
      this.expect(",");
    }
  }

  array() {
    const elements = [];
    this.list("]", () => elements.push(this.value()));
    return elements;
  }

  // A Map, because an object would take "__proto__" for something special.
  object() {
    const members = new Map();
    this.list("}", () => {
      this.white();
      const name = this.string();
      if (members.has(name)) throw new Refused("duplicate name");
      this.white();
      this.expect(":");
      members.set(name, this.value());
    });
    return members;
  }

  string() {
    this.expect('"');
    let out = "";
    for (;;) {
      const c = this.text[this.at++];
      if (c === undefined || c < " ") throw new Refused("string");
      if (c === '"') break;
      out += c === "\\" ? this.escape() : c;
    }
    checkString(out, this.limits);
    return out;
  }

  escape() {
    const c = this.text[this.at++];
    const short = { '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };
    if (c !== undefined && Object.hasOwn(short, c)) return short[c];
    const hex = this.text.slice(this.at, this.at + 4);
    if (c !== "u" || !/^[0-9a-fA-F]{4}$/.test(hex)) throw new Refused("escape");
    this.at += 4;
    return String.fromCharCode(parseInt(hex, 16));
  }

  number() {
    const grammar = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
    grammar.lastIndex = this.at;
    const found = grammar.exec(this.text);
    if (found === null) throw new Refused("value");
    this.at += found[0].length;
    return checkNumber(found[0]);
  }
}

function checkString(s, limits) {
  if (!s.isWellFormed()) throw new Refused("lone surrogate");
  if (Buffer.byteLength(s) > limits.stringBytes) throw new Refused("string length");
  for (const c of s) {
    const p = c.codePointAt(0);
    if ((p & 0xfffe) === 0xfffe || (p >= 0xfdd0 && p <= 0xfdef)) throw new Refused("noncharacter");
  }
}

function checkNumber(token) {
  if (token.length > maxNumber) throw new Refused("number length");
  const n = Number(token);
  if (!Number.isFinite(n)) throw new Refused("range");
  if (Object.is(n, -0)) throw new Refused("negative zero");
  if (n === 0 && /[1-9]/.test(token.split(/e/i)[0])) throw new Refused("underflow");
  const exact = n === 0 ? null : integer(token);
  if (exact !== null && exact !== integer(String(n))) throw new Refused("other integer");
  return n;
}

// integer returns the exact value of a number text if it is an integer.
function integer(text) {
  const [, sign, whole, fraction = "", exponent = "0"] = /^(-?)([0-9]+)(?:\.([0-9]+))?(?:e([+-]?[0-9]+))?$/i.exec(text);
  const shift = Number(exponent) - fraction.length;
  let value = BigInt(sign + whole + fraction);
  if (shift >= 0) return value * 10n ** BigInt(shift);
  const scale = 10n ** BigInt(-shift);
  return value % scale === 0n ? value / scale : null;
}

// canonical writes a tree as RFC 8785 says. JavaScript compares strings by
// UTF-16 code unit, and its numbers and string escapes are where RFC 8785 took
// them from.
function canonical(tree) {
  if (Array.isArray(tree)) return "[" + tree.map(canonical).join(",") + "]";
  if (tree instanceof Map) {
    const names = [...tree.keys()].sort((a, b) => (a < b ? -1 : 1));
    return "{" + names.map((name) => JSON.stringify(name) + ":" + canonical(tree.get(name))).join(",") + "}";
  }
  return JSON.stringify(tree);
}

function decode(bytes, limits) {
  if (bytes.length > limits.bytes) throw new Refused("size");
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Refused("UTF-8");
  }
  return new Reader(text, limits).document();
}

function freeze(bytes, limits) {
  const text = canonical(decode(bytes, limits));
  if (Buffer.byteLength(text) > limits.bytes) throw new Refused("canonical size");
  return text;
}

const sha256 = (text) => createHash("sha256").update(text).digest("hex");

function record(members) {
  const text = canonical(members);
  return { canonical: text, hash: sha256(text) };
}

function answer(question) {
  if (question.agent !== undefined) {
    const { agent, tool, arguments: argsCanonicalJson } = question;
    return { hash: record(new Map(Object.entries({ agent, argsCanonicalJson, tool, v: 1 }))).hash };
  }
  if (question.kind !== undefined) {
    const members = decode(Buffer.from(question.members_base64, "base64"), recordLimits);
    return record(members.set("v", 1).set("kind", question.kind));
  }
  try {
    const text = freeze(Buffer.from(question.input_base64, "base64"), argumentLimits);
    return { accept: true, canonical: text, digest: sha256(text) };
  } catch (e) {
    if (!(e instanceof Refused)) throw e;
    return { accept: false, canonical: "", digest: "" };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(JSON.stringify(answer(JSON.parse(line))) + "\n");
}
