// Copyright (C) The nginx-dsa authors
//
// The state of the server, read from dsa_status at "status" next to this page.
// The view exists only if that address answers, because operators restrict it.

import { status } from "./api.js";
import { bar, LineChart } from "./chart.js";
import { $, el } from "./dom.js";
import { amount, counted, milliseconds, percent, percentiles, short, span,
         sum } from "./figures.js";

const PERIOD = 2000;            // ms between two reads
const HISTORY = 600;            // seconds on the charts
const RATE = 10;                // seconds over which a rate is taken
const WINDOW = 30;              // and percentiles

const PARTS = [0.5, 0.95, 0.99];

const PERCENTILES = [{ name: "median", style: "s1" },
                     { name: "95 %", style: "s2" },
                     { name: "99 %", style: "s3" }];

let samples = [];               // what dsa_status returned, the last one last
let points = [];                // the figures of each for the charts
let charts = null;
let failed = false;


// The sample to compare the last one with: the latest that is so much older, or
// the first.

function before(seconds) {
    const { time } = samples[samples.length - 1];

    return samples.findLast((s) => s.time <= time - seconds) || samples[0];
}


function rate(value, seconds) {
    const now = samples[samples.length - 1];
    const then = before(seconds);
    const change = counted(value(now), value(then));

    return now === then || change === null ? null
                                           : change / (now.time - then.time);
}


function cached(sample) {
    return sum(Object.values(sample.tokens.cached));
}


// The engines of the pool that this page is for; running and waiting are
// reported by each.

function engines(sample) {
    const { pool } = document.documentElement.dataset;

    return sample.engines.filter((engine) => engine.pool === pool);
}


function pointOf() {
    const now = samples[samples.length - 1];
    const then = before(WINDOW);
    const latency = (name) => percentiles(now.latency[name],
                                          then.latency[name], PARTS);
    const prompt = counted(now.tokens.prompt, then.tokens.prompt);

    return {
        time: now.time,
        output: rate((s) => s.tokens.completion, RATE),
        input: rate((s) => s.tokens.prompt, RATE),
        requests: rate((s) => s.requests.total, RATE),
        cost: now.money ? rate((s) => amount(s.money), WINDOW) : null,
        running: sum(engines(now).map((engine) => engine.running)),
        waiting: sum(engines(now).map((engine) => engine.waiting)),
        hits: prompt ? counted(cached(now), cached(then)) / prompt : null,
        first: latency("ttft"),
        between: latency("inter_token"),
    };
}


// Creates the panels for which the first sample has data.

function build(now) {
    const money = now.money === undefined ? null
        : new LineChart(`Money per hour, ${now.money.currency}`,
                        [{ name: "cost", style: "c1" }], short, 0.01);

    charts = {
        tokens: new LineChart("Tokens per second",
            [{ name: "output", style: "c1" }, { name: "input", style: "c2" }],
            short, 10),
        requests: new LineChart("Requests",
            [{ name: "running", style: "c1" },
             { name: "waiting", style: "c2" }], short, 4),
        first: new LineChart("Time to first token", PERCENTILES, milliseconds,
                             20),
        between: new LineChart("Time between tokens", PERCENTILES,
                               milliseconds, 5),
        hits: new LineChart("Input tokens found in the cache",
            [{ name: "hit rate", style: "c1" }], percent, 1),
        money,
    };

    $("dashboard").replaceChildren(
        el("div", { class: "page" },
           el("header", { class: "state", id: "state" }),
           el("dl", { class: "tiles", id: "tiles" }),
           el("div", { class: "panels" },
              ...Object.values(charts).filter((chart) => chart !== null)
                       .map((chart) => chart.node)),
           el("div", { id: "tables" })));
}


function showCharts() {
    const times = points.map((point) => point.time);
    const from = Math.min(points[0].time, times[times.length - 1] - 60);
    const line = (name, scale = 1) => points.map((point) =>
        point[name] === null ? null : point[name] * scale);
    const lines = (name) => PARTS.map((part, i) =>
        points.map((point) => point[name][i]));

    charts.tokens.set(times, [line("output"), line("input")], from);
    charts.requests.set(times, [line("running"), line("waiting")], from);
    charts.first.set(times, lines("first"), from);
    charts.between.set(times, lines("between"), from);
    charts.hits.set(times, [line("hits")], from);
    charts.money?.set(times, [line("cost", 3600)], from);
}


function showState(now) {
    const list = engines(now);
    const up = list.filter((engine) => engine.up).length;
    const [style, text] = failed ? ["bad", "The server does not answer"]
        : up === 0 ? ["bad", "No engine is up"]
        : up < list.length ? ["warn", `${up} of ${list.length} engines are up`]
        : ["good", list.length === 1 ? "The engine is up"
                                     : `All ${up} engines are up`];
    const redis = now.redis === undefined ? []
        : [now.redis.up ? "Redis is connected" : "Redis is away",
           ...(now.redis.queue > 0
               ? [`${short(now.redis.queue)} ledger entries wait`] : [])];

    $("state").replaceChildren(
        el("p", { class: "light " + style }, el("span"), text),
        el("p", {}, [...redis, `up for ${span(now.uptime)}`,
                     `version ${now.version}`].join(" · ")));
}


function showTiles(now, point) {
    const tiles = [
        ["Output tokens/s", short(point.output)],
        ["Requests/s", short(point.requests)],
        ["Running", short(point.running)],
        ["Waiting", short(point.waiting)],
        ["First token, median", milliseconds(point.first[0])],
        ["Token gap, median", milliseconds(point.between[0])],
        ["Cache hits", percent(point.hits)],
    ];

    if (now.money !== undefined) {
        tiles.push([`Cost, ${now.money.currency}`,
                    amount(now.money).toFixed(2)]);
    }

    $("tiles").replaceChildren(...tiles.map(([name, value]) =>
        el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}


function makeTable(title, head, rows) {
    const cell = (tag, value, i) =>
        el(tag, { class: head[i].startsWith("#") ? "end" : null,
                  scope: tag === "th" ? "col" : null }, value);

    return el("section", { class: "panel wide" }, el("h3", {}, title),
        el("div", { class: "table", tabindex: "0" }, el("table", {},
            el("thead", {}, el("tr", {}, ...head.map((name, i) =>
                cell("th", name.replace("#", ""), i)))),
            el("tbody", {}, ...rows.map((row) => el("tr", {},
                ...row.map((value, i) => cell("td", value, i))))))));
}


function engineLight(engine) {
    const [style, text] = !engine.up ? ["bad", "down"]
                          : engine.draining ? ["warn", "draining"]
                          : ["good", "up"];

    return el("span", { class: "light " + style }, el("span"), text);
}


function engineTable(now) {
    const then = before(RATE);

    return makeTable("Engines",
        ["Engine", "State", "Model", "#Running", "#Waiting", "#Tokens/s",
         "#Steps/s", "#Drafts/s", "#Accepted", "#Tokens/step", "#Preempted", "#Heartbeat"],
        engines(now).map((engine) => {
            const old = then.engines.find((e) => e.engine === engine.engine
                                                 && e.pool === engine.pool);
            const since = (name) => old === undefined || then === now ? null
                : counted(engine[name], old[name] ?? Infinity);
            const share = (part, whole) => since(whole) > 0
                ? since(part) / since(whole) : null;
            const per = (name) => {
                const change = since(name);

                return short(change === null ? null
                                             : change / (now.time - then.time));
            };

            return [engine.engine.replace(/^unix:.*\//, ""), engineLight(engine),
                    engine.model ?? "–", short(engine.running),
                    short(engine.waiting), per("completion_tokens"),
                    per("steps"), per("draft_tokens"),
                    percent(share("accepted_draft_tokens", "draft_tokens")),
                    short(share("decode_tokens", "decodes")),
                    short(engine.preemptions),
                    milliseconds(engine.heartbeat_ms)];
        }));
}


// GPU memory has pages of requests and of prefixes; the host's has prefixes.
// Redis has no size of its own, only hits.

function tierTable(now) {
    const names = { gpu: "Engine", host: "Host memory", redis: "Redis" };

    const rows = engines(now).flatMap((engine) =>
        Object.entries(engine.tiers || {}).map(([name, tier]) => {
            const sized = tier.pages > 0;

            return [engine.engine.replace(/^unix:.*\//, ""),
                    names[name] || name,
                    sized ? bar([{ value: tier.used, style: "c1" }],
                                tier.pages, `${tier.used} of ${tier.pages}`)
                          : "–",
                    sized ? `${short(tier.used)} of ${short(tier.pages)}`
                          : "–",
                    short(tier.hit_tokens)];
        }));

    return makeTable("Pages of the KV cache",
                 ["Engine", "Tier", "Used", "#Pages", "#Tokens hit"], rows);
}


function tenantTable(now) {
    const list = now.tenants;
    const most = Math.max(1, ...list.map((t) => t.running + t.waiting));
    const money = now.money !== undefined;

    return makeTable("Tenants",
        ["Tenant", "Running and waiting", "#Running", "#Waiting", "#Requests",
         "#Tokens", ...(money ? ["#Cost", "#Today", "#Month"] : [])],
        list.map((tenant) => [
            tenant.name || tenant.key || tenant.tenant.slice(0, 12),
            bar([{ value: tenant.running, style: "c1" },
                 { value: tenant.waiting, style: "c2" }], most,
                `${tenant.running} running, ${tenant.waiting} waiting`),
            short(tenant.running), short(tenant.waiting),
            short(tenant.requests), short(tenant.tokens),
            ...(money ? [tenant.cost ?? "–", tenant.spent?.day ?? "–",
                         tenant.spent?.month ?? "–"] : []),
        ]));
}


// Tables are not replaced while they contain a selection or the focus, which
// would be lost.

function showTables(now) {
    const box = $("tables");

    if (box.contains(document.activeElement)
        || (!getSelection().isCollapsed && box.contains(
            getSelection().anchorNode)))
    {
        return;
    }

    const tables = [engineTable(now), tierTable(now)];

    if (now.tenants !== undefined && now.tenants.length > 0) {
        tables.push(tenantTable(now));
    }

    box.replaceChildren(...tables);
}


function showDashboard() {
    const now = samples[samples.length - 1];

    showState(now);

    if (!$("dashboard").hidden) {
        showTiles(now, points[points.length - 1]);
        showCharts();
        showTables(now);
    }
}


function addSample(sample) {
    const last = samples[samples.length - 1];

    // after a restart of the server an answer of the old process may come late

    if (last !== undefined && sample.time <= last.time) {
        return;
    }

    samples = samples.filter((s) => s.time > sample.time - HISTORY);
    points = points.filter((p) => p.time > sample.time - HISTORY);
    samples.push(sample);

    if (charts === null) {
        build(sample);
    }

    points.push(pointOf());
}


async function read() {
    try {
        const sample = await status();

        failed = sample === null;

        if (sample !== null) {
            addSample(sample);
        }

    } catch {
        failed = true;
    }

    if (samples.length > 0) {
        showDashboard();
    }
}


async function poll() {
    if (!document.hidden) {
        await read();
    }

    setTimeout(poll, PERIOD);
}


function showView(name) {
    const dashboard = name === "dashboard";

    $("chat").hidden = dashboard;
    $("dashboard").hidden = !dashboard;
    $("to-chat").setAttribute("aria-current", dashboard ? "false" : "page");
    $("to-dashboard").setAttribute("aria-current",
                                   dashboard ? "page" : "false");

    if (dashboard) {
        showDashboard();
    }
}


export async function startDashboard() {
    await read();

    if (samples.length === 0) {
        return;
    }

    const nav = $("to-chat").parentElement;
    const follow = () => showView(location.hash.slice(1));

    nav.hidden = false;
    $("to-chat").addEventListener("click", () => { location.hash = ""; });
    $("to-dashboard").addEventListener("click", () => {
        location.hash = "dashboard";
    });
    addEventListener("hashchange", follow);
    follow();
    setTimeout(poll, PERIOD);
}
