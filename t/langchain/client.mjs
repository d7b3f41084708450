// Copyright (C) The nginx-dsa authors
//
// Talks to a server with LangChain.  Reads lines of JSON, [BASE_URL, JOBS], and
// prints what it got for each as one line of JSON.
//
//     node client.mjs
//
// JOBS is an array of [CLASS, COMMAND, OPTIONS], whose results are printed as an
// array.  Classes: deepseek (ChatDeepSeek), openai (ChatOpenAI), responses (the
// same with the Responses API).  Commands: invoke and stream (the same request
// both ways), loop and streamLoop (each call gets the next one of "results"),
// structured (an answer in the form of {a: integer}, by "method", from a schema
// of zod if "zod" is true), abort (a stream is left after its first text).
// OPTIONS have the "input", the "tools", "bind" for options of the call, "ctl": a
// socket of the engine that gets a "go" after the first text of a stream, and
// options of the class.

import { webcrypto } from "node:crypto";
import { connect } from "node:net";
import { createInterface } from "node:readline";

import { HumanMessage, SystemMessage,
         ToolMessage } from "@langchain/core/messages";
import { ChatDeepSeek } from "@langchain/deepseek";
import { ChatOpenAI } from "@langchain/openai";
import { z } from "zod";

// Debian 12 has Node 18, which has no global crypto; LangChain uses it for zod

globalThis.crypto ??= webcrypto;

const settings = { apiKey: "sk-test", maxRetries: 0 };

const classes = {
    deepseek: (o) => new ChatDeepSeek({ ...settings, ...o }),
    openai: (o) => new ChatOpenAI({ ...settings, ...o }),
    responses: (o) => new ChatOpenAI({ ...settings, useResponsesApi: true,
                                       ...o }),
};

const schemas = {
    json: {
        type: "object", properties: { a: { type: "integer" } },
        required: ["a"], additionalProperties: false,
    },
    zod: z.object({ a: z.int().min(-1000).max(1000) }),
};

function plain(m) {
    return {
        text: m.text,
        reasoning: m.additional_kwargs.reasoning_content
            ?? m.contentBlocks.filter((b) => b.type === "reasoning")
                .map((b) => b.reasoning).join(""),
        calls: m.tool_calls.map((c) => [c.name, c.args]),
        ids: m.tool_calls.map((c) => c.id),
        finish: m.response_metadata.finish_reason
            ?? m.response_metadata.status ?? null,
        usage: m.usage_metadata ?? null,
    };
}

// The message that the chunks of a stream add up to.

async function gather(stream, got, ctl) {
    let message;

    for await (const chunk of stream) {
        if (chunk.text !== "" && ctl !== undefined) {
            connect(ctl).resume().end("go\n");
            ctl = undefined;
        }

        message = message === undefined ? chunk : message.concat(chunk);
        got.chunks++;
    }

    return message;
}

async function loop(model, { input, results }, ask) {
    const messages = [new HumanMessage(input)];
    const rounds = [];

    for (;;) {
        const message = await ask(model, messages);

        rounds.push(plain(message));
        messages.push(message);

        if (message.tool_calls.length === 0) {
            return { rounds };
        }

        for (const call of message.tool_calls) {
            messages.push(new ToolMessage({ tool_call_id: call.id,
                                            content: results.shift() }));
        }
    }
}

const commands = {

    async invoke(model, { input }) {
        return plain(await model.invoke(input));
    },

    async stream(model, { input, ctl }) {
        const got = { chunks: 0 };
        const message = await gather(await model.stream(input), got, ctl);

        return { ...plain(message), ...got };
    },

    async loop(model, options) {
        return loop(model, options, (m, messages) => m.invoke(messages));
    },

    async streamLoop(model, options) {
        return loop(model, options, async (m, messages) =>
            gather(await m.stream(messages), { chunks: 0 }));
    },

    async structured(model, { input, method, zod, strict }) {
        const form = model.withStructuredOutput(
            zod ? schemas.zod : schemas.json,
            { method, name: "answer", strict });

        return { object: await form.invoke([
            new SystemMessage("You answer in json."),
            new HumanMessage(input) ]) };
    },

    async abort(model, { input }) {
        const abort = new AbortController();
        let text = null, error = null;

        try {
            for await (const chunk of
                       await model.stream(input, { signal: abort.signal }))
            {
                if (chunk.text !== "") {
                    text ??= chunk.text;
                    abort.abort();
                }
            }
        } catch (e) {
            error = e.name;
        }

        return { text, error };
    },
};

for await (const line of createInterface({ input: process.stdin })) {
    const [baseURL, jobs] = JSON.parse(line);
    const all = [];

    for (const [name, command, options] of jobs) {
        const { input, results, tools, bind, method, zod, strict, ctl,
                ...fields } = options;

        try {
            let model = classes[name]({ configuration: { baseURL },
                                        ...fields });

            if (tools !== undefined) {
                model = model.bindTools(tools, bind);
            }

            all.push(await commands[command](model, options));

        } catch (e) {
            all.push({ error: e.name, message: e.message,
                       status: e.status ?? null, param: e.param ?? null });
        }
    }

    console.log(JSON.stringify(all));
}
