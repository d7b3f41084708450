// Copyright (C) The nginx-dsa authors
//
// Lines over time, and bars of a part in a whole.  They are plain SVG without a
// library: the page loads nothing, it would have to contain the library, and it
// needs these two forms only.

import { el, svg } from "./dom.js";
import { span } from "./figures.js";

const HEIGHT = 150;
const LEFT = 52;                // for the labels of the axis
const BOTTOM = 22;
const TOP = 8;
const RIGHT = 8;


// The least of 1, 2 and 5 times a power of ten that three steps reach top.

function step(top) {
    const power = 10 ** Math.floor(Math.log10(top / 3));

    return power * [1, 2, 5, 10].find((n) => 3 * n * power >= top * 0.999);
}


// A chart of series over the same times.  lines: { name, style }, style being
// the class of its color; text(value) formats a value.  The legend shows the
// last values, or those below the pointer, or those that the arrow keys have
// reached.

export class LineChart {
    constructor(title, lines, text, least) {
        this.text = text;
        this.least = least;     // the top of the axis is not below it
        this.times = [];
        this.values = lines.map(() => []);
        this.at = null;         // the index that the legend shows
        this.width = 0;

        this.when = el("span", { class: "when" });
        this.numbers = lines.map(() => el("b", {}));
        this.grid = svg("g", { class: "grid" });
        this.paths = lines.map(({ style }) =>
            svg("path", { class: "line " + style }));
        this.dots = lines.map(({ style }) =>
            svg("circle", { class: "dot " + style, r: 3.5 }));
        this.cross = svg("path", { class: "cross" });
        this.plot = svg("svg", { class: "plot", height: HEIGHT, role: "img",
                                 tabindex: "0" },
                        this.grid, this.cross, ...this.paths, ...this.dots);

        this.node = el("figure", { class: "panel" },
            el("figcaption", {}, el("h3", {}, title), this.when),
            el("ul", { class: "legend" }, ...lines.map(({ name, style }, i) =>
                el("li", {}, el("i", { class: style }), name + " ",
                   this.numbers[i]))),
            this.plot);
        this.title = title;
        this.names = lines.map(({ name }) => name);

        this.plot.addEventListener("pointermove", (event) =>
            this.point(this.index(event.offsetX)));
        this.plot.addEventListener("pointerleave", () => this.point(null));
        this.plot.addEventListener("blur", () => this.point(null));
        this.plot.addEventListener("keydown", (event) => this.key(event));

        new ResizeObserver(([entry]) => {
            this.width = entry.contentRect.width;
            this.draw();
        }).observe(this.plot);
    }

    // times in seconds; values[line][i], null where there is none; from is the
    // left end of the axis.

    set(times, values, from) {
        const held = this.at === null ? null : this.times[this.at];

        this.times = times;
        this.values = values;
        this.from = from;
        this.at = held === null ? null : Math.max(0, times.indexOf(held));
        this.draw();
    }

    x(time) {
        const end = this.times[this.times.length - 1];

        return LEFT + (time - this.from) / (end - this.from || 1)
                      * (this.width - LEFT - RIGHT);
    }

    y(value) {
        return TOP + (1 - value / this.top) * (HEIGHT - TOP - BOTTOM);
    }

    index(x) {
        let best = null;

        this.times.forEach((time, i) => {
            if (best === null || Math.abs(this.x(time) - x)
                                 < Math.abs(this.x(this.times[best]) - x))
            {
                best = i;
            }
        });

        return best;
    }

    key(event) {
        const last = this.times.length - 1;
        const now = this.at ?? last;
        const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0,
                     End: last }[event.key];

        if (to !== undefined) {
            event.preventDefault();
            this.point(Math.min(Math.max(to, 0), last));
        }
    }

    point(index) {
        this.at = index;
        this.legend();
        this.marks();
    }

    draw() {
        this.legend();

        if (this.width === 0 || this.times.length === 0) {
            return;
        }

        const most = Math.max(this.least, ...this.values.flat()
            .filter((value) => value !== null));
        const unit = step(most);

        this.top = Math.ceil(most / unit - 0.001) * unit;

        this.axes(unit);
        this.paths.forEach((path, line) =>
            path.setAttribute("d", this.path(this.values[line])));
        this.marks();
    }

    axes(unit) {
        const end = this.times[this.times.length - 1];
        const marks = [];

        for (let value = 0; value <= this.top * 1.001; value += unit) {
            const y = this.y(value);

            marks.push(svg("path", { d: `M${LEFT} ${y}H${this.width - RIGHT}`,
                                     class: value === 0 ? "base" : "" }),
                       svg("text", { x: LEFT - 8, y: y + 4,
                                     "text-anchor": "end" },
                           this.text(value)));
        }

        marks.push(svg("text", { x: LEFT, y: HEIGHT - 4 },
                       span(end - this.from) + " ago"),
                   svg("text", { x: this.width - RIGHT, y: HEIGHT - 4,
                                 "text-anchor": "end" }, "now"));

        this.grid.replaceChildren(...marks);
    }

    // A line is interrupted where there is no value.

    path(values) {
        let pen = "M";
        let d = "";

        values.forEach((value, i) => {
            if (value === null) {
                pen = "M";
                return;
            }

            d += `${pen}${this.x(this.times[i]).toFixed(1)} `
                 + this.y(value).toFixed(1);
            pen = "L";
        });

        return d;
    }

    // The numbers do not depend on the width, which is not known before the
    // page has a layout.

    legend() {
        const last = this.times.length - 1;
        const at = this.at ?? last;

        if (last < 0) {
            return;
        }

        const texts = this.values.map((values) => this.text(values[at]));

        this.numbers.forEach((node, i) => { node.textContent = texts[i]; });
        this.when.textContent = this.at === null ? ""
            : span(this.times[last] - this.times[at]) + " ago";
        this.plot.setAttribute("aria-label", `${this.title}: `
            + this.names.map((name, i) => `${name} ${texts[i]}`).join(", "));
    }

    // The dots, and the cross at an earlier value.

    marks() {
        const at = this.at ?? this.times.length - 1;

        if (at < 0 || this.width === 0) {
            return;
        }

        const x = this.x(this.times[at]);

        this.cross.setAttribute("d", this.at === null ? ""
            : `M${x} ${TOP}V${HEIGHT - BOTTOM}`);

        this.dots.forEach((dot, line) => {
            const value = this.values[line][at];

            dot.setAttribute("cx", x);
            dot.setAttribute("cy", value === null ? -10 : this.y(value));
        });
    }
}


// A bar of parts of a whole: { value, style } each.  The text beside it has the
// numbers.

export function bar(parts, whole, label) {
    let start = 0;

    return svg("svg", { class: "bar", role: "img", "aria-label": label },
        svg("rect", { class: "whole", width: "100%", height: "100%" }),
        ...parts.map(({ value, style }) => {
            const width = whole > 0 ? 100 * value / whole : 0;
            const node = svg("rect", { class: style, x: `${start}%`,
                                       width: `${width}%`, height: "100%" });

            start += width;

            return node;
        }));
}
