// Copyright (C) The nginx-dsa authors
//
// Talks to a server with OpenAI's client.  Reads lines of JSON, [COMMAND,
// ARGUMENTS], and prints what it got for each as one line of JSON.
//
//     node client.mjs BASE_URL
//
// Commands: chat, stream (the same request both ways), choices, choicesStream,
// completion, completionStream, models, model.

import { createInterface } from "node:readline";

import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "sk-test",
                            maxRetries: 0, timeout: 120000 });

const commands = {

    async chat(args) {
        const c = await client.chat.completions.create(args);
        const choice = c.choices[0];

        return {
            object: c.object,
            content: choice.message.content,
            reasoning: choice.message.reasoning_content ?? null,
            role: choice.message.role,
            finish: choice.finish_reason,
            usage: c.usage,
        };
    },

    async stream(args) {
        const s = await client.chat.completions.create(
            { ...args, stream: true });
        const got = { content: "", reasoning: null, chunks: 0, usage: null };

        for await (const chunk of s) {
            const choice = chunk.choices[0];

            got.chunks++;
            got.object = chunk.object;
            got.usage = chunk.usage ?? got.usage;

            if (choice === undefined) {
                continue;
            }

            got.content += choice.delta.content ?? "";
            got.role = choice.delta.role ?? got.role;
            got.finish = choice.finish_reason ?? got.finish;

            if (choice.delta.reasoning_content != null) {
                got.reasoning ??= "";
                got.reasoning += choice.delta.reasoning_content;
            }
        }

        return got;
    },

    async choices(args) {
        return await client.chat.completions.create(args);
    },

    // the client joins the chunks of each choice itself

    async choicesStream(args) {
        return await client.chat.completions.stream(args)
            .finalChatCompletion();
    },

    async completion(args) {
        const c = await client.completions.create(args);
        const choice = c.choices[0];

        return {
            object: c.object,
            text: choice.text,
            logprobs: choice.logprobs,
            finish: choice.finish_reason,
            usage: c.usage,
        };
    },

    async completionStream(args) {
        const s = await client.completions.create({ ...args, stream: true });
        const got = { text: "", logprobs: null };

        for await (const chunk of s) {
            const choice = chunk.choices[0];

            got.object = chunk.object;
            got.text += choice.text;
            got.finish = choice.finish_reason ?? got.finish;
            got.usage = chunk.usage ?? got.usage;

            for (const key of Object.keys(choice.logprobs ?? {})) {
                got.logprobs ??= {};
                got.logprobs[key] = [ ...got.logprobs[key] ?? [],
                                      ...choice.logprobs[key] ];
            }
        }

        return got;
    },

    async model(args) {
        return await client.models.retrieve(args.id);
    },

    async models() {
        const list = [];

        for await (const model of client.models.list()) {
            list.push(model.id);
        }

        return { list };
    },
};

for await (const line of createInterface({ input: process.stdin })) {
    const [command, args] = JSON.parse(line);

    try {
        console.log(JSON.stringify(await commands[command](args)));

    } catch (e) {
        console.log(JSON.stringify({
            error: e.constructor.name, status: e.status ?? null,
            message: e.message, param: e.param ?? null, type: e.type ?? null,
        }));
    }
}
