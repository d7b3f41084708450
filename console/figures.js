// Copyright (C) The nginx-dsa authors
//
// Figures of two reads of dsa_status, whose counters only grow: rates, and
// percentiles of what a histogram counted between the reads.


// What has been counted since, or null if the server started anew.

export function counted(now, before) {
    return now >= before ? now - before : null;
}


// counts[i] are above bounds[i - 1] and at most bounds[i].  Returns the value
// below which the part q of them is, as if they were spread evenly within each
// bucket, or null if there are none.  The last bucket has no upper bound, and
// counts as its lower one.

export function quantile(bounds, counts, q) {
    const total = counts.reduce((sum, n) => sum + n, 0);

    if (total === 0) {
        return null;
    }

    let left = q * total;

    for (let i = 0; i < bounds.length; i++) {
        if (left <= counts[i] && counts[i] > 0) {
            const low = i === 0 ? 0 : bounds[i - 1];

            return low + (bounds[i] - low) * left / counts[i];
        }

        left -= counts[i];
    }

    return bounds[bounds.length - 1];
}


// The percentiles of what was counted between two histograms, or nulls.

export function percentiles(now, before, parts) {
    const counts = now.counts.map((n, i) => counted(n, before.counts[i] ?? 0));

    if (counts.includes(null)) {
        return parts.map(() => null);
    }

    return parts.map((q) => quantile(now.bounds, counts, q));
}


// An amount of money is a decimal string; the page needs it only to draw.

export function amount(money) {
    return money ? Number(money.miss) + Number(money.hit)
                   + Number(money.output) : 0;
}


export function sum(values) {
    return values.reduce((total, value) => total + (value || 0), 0);
}


// Numbers for people: 3 digits, with a unit of thousands.

export function short(value) {
    if (value === null || value === undefined || Number.isNaN(value)) {
        return "–";
    }

    for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e4]]) {
        if (Math.abs(value) >= size) {
            const scaled = value / (unit === "k" ? 1e3 : size);

            return scaled.toFixed(scaled < 100 ? 1 : 0) + unit;
        }
    }

    return Math.abs(value) < 10 && !Number.isInteger(value)
        ? value.toFixed(1) : new Intl.NumberFormat("en").format(
            Math.round(value));
}


export function milliseconds(value) {
    if (value === null || value === undefined) {
        return "–";
    }

    return value < 10 && !Number.isInteger(value) ? value.toFixed(1) + " ms"
           : value < 1000 ? Math.round(value) + " ms"
           : Number((value / 1000).toFixed(value < 10000 ? 2 : 1)) + " s";
}


export function percent(value) {
    return value === null || value === undefined ? "–"
        : (100 * value).toFixed(value < 0.1 && value > 0 ? 1 : 0) + " %";
}


export function span(seconds) {
    const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
    const at = units.findIndex(([, size]) => seconds >= size);

    if (at === -1) {
        return "0 s";
    }

    const [unit, size] = units[at];
    const rest = at < 2 ? Math.floor(seconds % size / units[at + 1][1]) : 0;

    return Math.floor(seconds / size) + " " + unit
           + (rest > 0 ? ` ${rest} ${units[at + 1][0]}` : "");
}
