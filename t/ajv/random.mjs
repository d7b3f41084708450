// Copyright (C) The nginx-dsa authors
//
// Random schemas for each keyword, and ajv's verdict on their answers:
//
//     node random.mjs schemas DIR COUNT SEED
//     node random.mjs check DIR KEYWORDS...
//
// "schemas" writes DIR/KEYWORD.schemas for each keyword, with a schema a line,
// which has the keyword, and prints the keywords.  DIR/KEYWORD.answers has a
// line for each schema: a JSON string with an answer, or null if it was
// refused.  "check" prints a JSON array with how many of each keyword were
// refused, how many answers there are and how many are valid, and the first one
// that is not.

import { readFileSync, writeFileSync } from "node:fs";

import Ajv2020 from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

let state = 1n;

function dice(n) {
    state ^= state >> 12n;
    state ^= BigInt.asUintN(64, state << 25n);
    state ^= state >> 27n;

    return Number(BigInt.asUintN(64, state * 0x2545f4914f6cdd1dn) >> 32n) % n;
}

function pick(list) {
    return list[dice(list.length)];
}

function some(list, least = 1) {
    const rest = [...list];
    const n = least + dice(rest.length - least + 1);

    return Array.from({ length: n },
                      () => rest.splice(dice(rest.length), 1)[0]);
}

const NAMES = ["a", "b", "ab", "c d", "é", "x\"y"];
const PATTERNS = ["^a", "b$", "^[a-f]{1,3}$", "^(x|yz){1,2}$", "\\d",
                  "^\\w+-[^a]$"];
const FORMATS = ["date-time", "date", "time", "duration", "email", "hostname",
                 "ipv4", "ipv6", "uri", "uuid"];
const VALUES = [0, 1, -3, 2.5, "", "a", "ab", "b c", true, false, null, [],
                [1, "a"], {}, { a: 1 }];

// Small schemas, so that answers end: no text without a length, no object with
// any members.

const scalars = [
    () => ({ type: "null" }),
    () => ({ type: "boolean" }),
    () => ({ type: "integer", ...pick([{}, { minimum: dice(9) - 4 }]) }),
    () => ({ type: "number", maximum: dice(40) / 4 }),
    () => ({ type: "string", maxLength: 1 + dice(5) }),
    () => ({ enum: some(VALUES.slice(0, 11)) }),
    () => ({ const: pick(VALUES) }),
];

function any(depth) {
    if (depth === 0 || dice(3) !== 0) {
        return pick(scalars)();
    }

    return pick([() => object(depth - 1), () => array(depth - 1),
                 () => ({ anyOf: [any(depth - 1), any(depth - 1)] })])();
}

function object(depth) {
    const names = some(NAMES);

    return {
        type: "object",
        properties: Object.fromEntries(names.map((n) => [n, any(depth)])),
        required: names.filter(() => dice(2)),
        additionalProperties: pick([false, false, { type: "null" }]),
    };
}

function array(depth) {
    return { type: "array", items: any(depth), maxItems: dice(4) };
}

function text() {
    return { type: "string", maxLength: 2 + dice(6) };
}

function number(type = pick(["integer", "number"])) {
    return { type };
}

function nulls(names) {
    return Object.fromEntries(names.map((n) => [n, pick([
        { type: "null" }, { type: "integer" }, { type: "boolean" }])]));
}

// A schema that has the keyword.

const keywords = {
    type: () => ({ type: some(["null", "boolean", "integer", "string"]),
                   maxLength: 4 }),
    enum: () => ({ enum: some(VALUES), ...pick([{}, {}, { minimum: 1 },
                                                { maxLength: 1 }]) }),
    const: () => ({ const: pick(VALUES) }),
    anyOf: () => ({ anyOf: [any(2), any(2), any(1)] }),
    oneOf: () => ({ oneOf: some([{ type: "null" }, { type: "integer" },
                                 { type: "number", maximum: 7 }, text(),
                                 { const: pick(VALUES) }, object(0)], 2) }),
    allOf() {
        const one = object(1);

        return { allOf: [one, { required: some(Object.keys(one.properties)) },
                         { type: ["object", "null"] }] };
    },
    not: () => pick([
        () => ({ ...text(), not: { enum: some(VALUES) } }),
        () => ({ ...text(), not: { pattern: pick(PATTERNS) } }),
        () => ({ ...number(), not: { minimum: dice(20) - 10 } }),
        () => ({ type: ["string", "integer"], maxLength: 3,
                 not: { type: pick(["string", "integer"]) } })])(),
    if() {
        const names = some(NAMES, 2);

        return { type: "object", properties: { k: { enum: ["x", "y"] },
                                               ...nulls(names) },
                 required: ["k"], additionalProperties: false,
                 if: { properties: { k: { const: "x" } } },
                 then: { required: [names[0]] },
                 ...pick([{}, { else: { required: [names[1]] } }]) };
    },
    $ref: () => ({ $ref: "#/$defs/d", $defs: { d: pick([
        () => any(2),
        () => ({ type: "object", properties: {
            n: { anyOf: [{ type: "null" }, { $ref: "#/$defs/d" }] },
            ...nulls(some(NAMES)) }, required: ["n"],
            additionalProperties: false })])() } }),
    properties: () => object(2),
    required: () => ({ ...object(1), required: some(NAMES),
                       additionalProperties: { type: "boolean" } }),
    additionalProperties: () => ({ ...object(1), additionalProperties:
                                   pick(scalars.slice(0, 5))() }),
    patternProperties: () => ({
        type: "object", properties: nulls(some(NAMES)),
        patternProperties: { [pick(PATTERNS)]: { type: "integer" },
                             [pick(PATTERNS)]: { maximum: 50 } },
        additionalProperties: { type: "null" } }),
    propertyNames: () => ({
        type: "object", additionalProperties: { type: "null" },
        propertyNames: pick([{ pattern: pick(PATTERNS), maxLength: 6 },
                             { enum: some(NAMES) }, { maxLength: 2 }]) }),
    minProperties: () => ({ type: "object", properties: nulls(NAMES),
                            additionalProperties: false,
                            minProperties: dice(5) }),
    maxProperties: () => ({ type: "object", properties: nulls(some(NAMES, 2)),
                            additionalProperties: false,
                            maxProperties: dice(4) }),
    dependentRequired: () => ({
        type: "object", properties: nulls(NAMES), additionalProperties: false,
        dependentRequired: { [pick(NAMES)]: some(NAMES),
                             [pick(NAMES)]: some(NAMES) } }),
    dependentSchemas: () => ({
        type: "object", properties: nulls(NAMES), additionalProperties: false,
        dependentSchemas: { [pick(NAMES)]: { required: some(NAMES) } } }),
    items: () => ({ type: "array", items: any(1), maxItems: 1 + dice(4) }),
    prefixItems: () => ({ type: "array", prefixItems: [any(1), any(1)],
                          items: pick([false, { type: "integer" }]) }),
    minItems: () => ({ ...array(1), minItems: dice(4), maxItems: 3 + dice(3) }),
    maxItems: () => array(2),
    minLength: () => ({ type: "string", minLength: dice(4),
                        maxLength: 3 + dice(4) }),
    maxLength: text,
    pattern: () => ({ type: "string", pattern: pick(PATTERNS),
                      maxLength: 4 + dice(8) }),
    format: () => ({ type: "string", format: pick(FORMATS) }),
    minimum: () => ({ ...number(), minimum: (dice(400) - 200) / 8 }),
    maximum: () => ({ ...number(), maximum: (dice(400) - 200) / 8 }),
    exclusiveMinimum: () => ({ ...number(),
                               exclusiveMinimum: (dice(400) - 200) / 8 }),
    exclusiveMaximum: () => ({ ...number(),
                               exclusiveMaximum: (dice(400) - 200) / 8 }),
    multipleOf: () => pick([
        () => ({ type: "integer", multipleOf: 1 + dice(64), minimum: -1e9,
                 maximum: 1e9 }),
        () => ({ type: "number", multipleOf: pick([0.5, 0.25, 0.1, 3]),
                 minimum: -dice(9), maximum: dice(30) })])(),
    $defs: () => keywords.$ref(),
};

function check(schemas, answers) {
    const got = { schemas: schemas.length, refused: 0, answers: 0, valid: 0,
                  first: null };

    // a multiple of 0.1 is only nearly one as a double

    const ajv = new Ajv2020({ strict: false, multipleOfPrecision: 9 });

    addFormats(ajv);

    schemas.forEach((text, i) => {
        const answer = JSON.parse(answers[i]);

        if (answer === null) {
            got.refused++;
            return;
        }

        let why = null;

        got.answers++;

        try {
            if (!ajv.validate(JSON.parse(text), JSON.parse(answer))) {
                why = ajv.errorsText();
            }

        } catch (e) {
            why = String(e);
        }

        if (why === null) {
            got.valid++;

        } else {
            got.first ??= `${text}: ${answer.slice(0, 300)}: ${why}`;
        }
    });

    return got;
}

function linesOf(file) {
    return readFileSync(file, "utf8").trimEnd().split("\n");
}

const [command, dir, ...args] = process.argv.slice(2);

if (command === "schemas") {
    const [count, seed] = args.map(Number);

    Object.keys(keywords).forEach((keyword, n) => {
        state = BigInt(seed + n);
        writeFileSync(`${dir}/${keyword}.schemas`, Array.from(
            { length: count },
            () => JSON.stringify(keywords[keyword]()) + "\n").join(""));
    });

    console.log(Object.keys(keywords).join("\n"));

} else {
    console.log(JSON.stringify(args.map(
        (keyword) => check(linesOf(`${dir}/${keyword}.schemas`),
                           linesOf(`${dir}/${keyword}.answers`)))));
}
