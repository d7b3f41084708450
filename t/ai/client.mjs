// Copyright (C) The nginx-dsa authors
//
// Talks to a server with Vercel's AI SDK.  Reads lines of JSON, [BASE_URL,
// JOBS], and prints what it got for each as one line of JSON.
//
//     node client.mjs
//
// JOBS is an array of [PROVIDER, COMMAND, OPTIONS], whose results are printed as
// an array.  Providers: deepseek, anthropic.  Commands: generate and stream (the
// same request both ways), object and streamObject (an answer in the form of
// "schema"), oldObject and oldStreamObject (the same by the functions that were
// there before Output), abort (a stream is left after its first text).  OPTIONS
// are those of the SDK, apart from "model", "steps", "tools": pairs of a name and
// a JSON schema, whose calls get "results" one after another, and "ctl": a socket
// of the engine that gets a "go" after the first text of a stream.

import { connect } from "node:net";
import { createInterface } from "node:readline";

import { createAnthropic } from "@ai-sdk/anthropic";
import { createDeepSeek } from "@ai-sdk/deepseek";
import { generateObject, generateText, isStepCount, jsonSchema, Output,
         streamObject, streamText, tool } from "ai";

globalThis.AI_SDK_LOG_WARNINGS = false;

const providers = {
    anthropic: createAnthropic,
    deepseek: createDeepSeek,
};

function requestOf(baseURL, provider, { model, tools, results, steps, ...options }) {
    const request = {
        model: providers[provider]({ baseURL, apiKey: "sk-test" })(model),
        maxRetries: 0,
        stopWhen: isStepCount(steps ?? 1),
        ...options,
    };

    if (tools !== undefined) {
        request.tools = Object.fromEntries(tools.map(([name, inputSchema]) =>
            [name, tool({ inputSchema: jsonSchema(inputSchema),
                          execute: () => results.shift() })]));
    }

    return request;
}

// What both ways of an answer have.

async function plain(answer) {
    return {
        text: await answer.text,
        reasoning: await answer.reasoningText ?? null,
        finish: await answer.finishReason,
        usage: await answer.usage,
        warnings: await answer.warnings ?? [],
        steps: (await answer.steps).map((step) => ({
            text: step.text,
            reasoning: step.reasoningText ?? null,
            calls: step.toolCalls.map((c) => [c.toolName, c.input]),
            results: step.toolResults.map((r) => r.output),
            finish: step.finishReason,
        })),
    };
}

// Reads a stream to its end; the parts of an error are thrown.

async function drain(answer, got, ctl) {
    for await (const part of answer.fullStream) {
        if (part.type === "error") {
            throw part.error;
        }

        got.parts[part.type] = (got.parts[part.type] ?? 0) + 1;

        if (part.type === "text-delta") {
            if (got.deltas === "" && ctl !== undefined) {
                connect(ctl).resume().end("go\n");
            }

            got.deltas += part.text;
        }
    }

    return got;
}

function form(schema) {
    return { output: Output.object({ schema: jsonSchema(schema) }) };
}

// The last object of a stream, and how many partial ones came before it.

async function last(stream, object) {
    let partial = 0;

    for await (const _ of stream) {
        partial++;
    }

    return { object: await object, partial };
}

function onError() {
    /* the error is thrown where the stream is read */
}

const commands = {

    async generate(request) {
        return plain(await generateText(request));
    },

    async stream({ ctl, ...request }) {
        const answer = streamText({ ...request, onError });
        const got = await drain(answer, { parts: {}, deltas: "" }, ctl);

        return { ...await plain(answer), got };
    },

    async object({ schema, ...request }) {
        const answer = await generateText({ ...request, ...form(schema) });

        return { object: answer.output };
    },

    async streamObject({ schema, ...request }) {
        const answer = streamText({ ...request, ...form(schema), onError });

        return last(answer.partialOutputStream, answer.output);
    },

    async oldObject({ schema, ...request }) {
        const answer = await generateObject({
            ...request, schema: jsonSchema(schema) });

        return { object: answer.object };
    },

    async oldStreamObject({ schema, ...request }) {
        const answer = streamObject({ ...request, onError,
                                      schema: jsonSchema(schema) });

        return last(answer.partialObjectStream, answer.object);
    },

    async abort(request) {
        const abort = new AbortController();
        const answer = streamText({ ...request, onError,
                                    abortSignal: abort.signal });
        let text = null, aborted = false;

        for await (const part of answer.fullStream) {
            if (part.type === "text-delta") {
                text ??= part.text;
                abort.abort();
            }

            aborted ||= part.type === "abort";
        }

        return { text, aborted };
    },
};

for await (const line of createInterface({ input: process.stdin })) {
    const [baseURL, jobs] = JSON.parse(line);
    const all = [];

    for (const [provider, command, options] of jobs) {
        try {
            all.push(await commands[command](
                requestOf(baseURL, provider, options)));

        } catch (e) {
            all.push({ error: e.name, message: e.message,
                       status: e.statusCode ?? null,
                       retryable: e.isRetryable ?? null });
        }
    }

    console.log(JSON.stringify(all));
}
