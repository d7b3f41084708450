// Copyright (C) The nginx-dsa authors
//
// An MCP server with one tool over standard input and output, a JSON object a
// line.  "reverse" returns its text backwards.

import { createInterface } from 'node:readline';

const tool = {
    name: 'reverse',
    description: 'Reverses a text.',
    inputSchema: {
        type: 'object',
        properties: { text: { type: 'string' } },
        required: ['text'],
    },
};

const methods = {
    initialize: (params) => ({
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'reverse', version: '1' },
    }),
    ping: () => ({}),
    'tools/list': () => ({ tools: [tool] }),
    'tools/call': ({ arguments: { text } }) => ({
        content: [{ type: 'text', text: [...text].reverse().join('') }],
    }),
};

for await (const line of createInterface({ input: process.stdin })) {
    const { id, method, params } = JSON.parse(line);

    if (id === undefined) {
        continue;
    }

    const answer = methods[method]
        ? { result: methods[method](params ?? {}) }
        : { error: { code: -32601, message: `no method ${method}` } };

    process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, ...answer })
                         + '\n');
}
