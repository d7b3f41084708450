# Copyright (C) The nginx-dsa authors
#
# The page of dsa_console in a headless Chromium: the chat with an engine whose
# answers the test dictates.

use strict;
use warnings;
use utf8;

use Test::More;

use lib 't/lib';
use DSA::Browser;
use DSA::Fake;
use DSA::Test;

if (!DSA::Browser::find_chromium()) {
    BAIL_OUT('no chromium') if $ENV{DSA_NO_SKIP};
    plan skip_all => 'no chromium here; DSA_CHROMIUM may name one';
}

my $t = DSA::Test->new('console-browser');
my $fake = $t->start_fake();

# below /hostile/ a server whose names and errors are markup

my $img = '<img src=x onerror=window.xss=1>';

write_file($t->path('models'), json_encode({ object => 'list', data =>
    [ map { { id => $_, object => 'model' } } $img,
      '"><script>window.xss=1</script>' ] }));
write_file($t->path('demo'), json_encode({ object => 'list', data =>
    [ { id => 'nginx-dsa-demo', object => 'model' } ] }));
write_file($t->path('refused'), json_encode({ error =>
    { message => "$img <script>window.xss=1</script>" } }));

$t->start_nginx(server => 'location = / { dsa_console v32; }
    location = /hostile/ { dsa_console v32; }
    location = /hostile/v1/models {
        default_type application/json; alias %%DIR%%/models; }
    location = /hostile/v1/chat/completions {
        error_page 405 =400 /hostile/refused; return 405; }
    location = /hostile/refused {
        default_type application/json; alias %%DIR%%/refused; }
    location = /demo/ { dsa_console v32; }
    location = /demo/v1/models {
        default_type application/json; alias %%DIR%%/demo; }
    location = /keys/ { dsa_console v32; }
    location /keys/v1/ {
        if ($http_authorization != "Bearer sk-secret") { return 401; }
        dsa_pass v32; }');

my $origin = 'http://127.0.0.1:' . $t->port;
my $b = DSA::Browser->start($t->path('chromium'));

$b->size(1200, 800);


# Opens the page without what an earlier one stored.

sub open_page {
    my ($uri) = @_;

    $b->visit($origin . ($uri || '/'));
    $b->js('sessionStorage.clear(), localStorage.clear(), 0');
    $b->visit('about:blank');
    $b->visit($origin . ($uri || '/'));
    $b->wait_js('document.querySelector("#model").options.length > 0');

    return;
}


sub send_text {
    my ($text) = @_;

    $b->js('document.querySelector("#prompt").focus()');
    $b->type($text);
    $b->press('Enter');

    return;
}


# The text of the last element that a selector finds.

sub text {
    my ($selector) = @_;

    return $b->js('[...document.querySelectorAll(' . json_encode($selector)
                  . ')].at(-1)?.textContent ?? ""');
}


sub answered {
    my ($seconds) = @_;

    $b->wait_js('document.querySelectorAll(".answer").length > 0'
                . ' && !document.querySelector("[aria-busy]")'
                . ' && document.querySelector("#send").ariaLabel === "Send"',
                $seconds || 60);

    return;
}


# What must not be on the page: a script that ran, or an element, an attribute
# or an address that a text has made.

sub harmless {
    my ($name) = @_;

    is_deeply($b->js(<<'EOC'), [], "$name: no markup came from a text");
        [...document.querySelectorAll("main *, dialog *, select *")].flatMap(
            (node) => [
                ...[...node.attributes].filter((a) => /^on|^style$/i.test(
                    a.name) && !node.matches("#prompt")).map((a) => a.name),
                ...(/^(?:img|script|iframe|object|embed|base|form|link|meta)$/i
                    .test(node.tagName) ? [node.tagName] : []),
                ...(node.href !== undefined && typeof node.href === "string"
                    && !/^(?:https?|mailto):/.test(node.href)
                        ? [node.href] : [])])
EOC
    is($b->js('window.xss ?? null'), undef, "$name: no script ran");

    return;
}


# a chat: the text grows before the end, and thinking is folded

open_page();
is($b->js('document.activeElement.id'), 'prompt', 'the focus is on the field');
is($b->js('document.querySelector("#model").value'), 'fake-model',
   'the engine\'s model comes first');

send_text("!fake\nt I wonder\nwait\nt </think>\nt # Head\\n\\nfirst **bold**"
          . "\nwait\nt  and last\n");

$b->wait_js('document.querySelector(".preview")?.textContent === "I wonder"');
pass('thinking is shown as it arrives');
is($b->js('document.querySelector(".thinking").open'), 0, 'it is folded');
is(text('.thinking summary span'), 'I wonder', 'with a preview');
is($b->js('document.querySelector("#send").ariaLabel'), 'Stop',
   'the answer can be stopped');

ctl($fake, 'go');
$b->wait_js('document.querySelector(".markdown strong")');
is(text('.markdown'), 'Headfirst bold', 'a part of the answer is shown');
is(text('.markdown h2'), 'Head', 'with a heading');
is(text('.usage'), '', 'before the answer ended');
like(text('.thinking summary'), qr/^Thought for \d/, 'the thinking has ended');

ctl($fake, 'go');
answered();
is(text('.markdown'), 'Headfirst bold and last', 'the whole answer');
is(text('.thought'), 'I wonder', 'the thinking can be read');
like(text('.usage'), qr/^\d+ in · \d+ out/, 'usage');
is(text('#announcer'), 'The answer is complete.',
   'the end is announced to a screen reader');


# stop

my $cancelled = cancelled($fake);

send_text("!fake\nt </think>\nt begun\nhold\n");
$b->wait_js('[...document.querySelectorAll(".markdown")].at(-1)
             .textContent === "begun"');
is(cancelled($fake), $cancelled, 'nothing was cancelled');
$b->press('Escape');
answered();
DSA::Wait::wait_until(sub { cancelled($fake) > $cancelled }, 20,
                      'the cancel');
pass('Esc cancels the request in the engine');
is(text('.markdown'), 'begun', 'its text stays');
is(text('.answer .notice'), 'Stopped.', 'a note');


# regenerate, edit, new chat

my $n = $b->js('document.querySelectorAll(".turn").length');
my $requests = submitted($fake);

send_text("!fake\nt </think>\nt once\n");
answered();
$b->js('[...document.querySelectorAll(".answer footer button")].findLast(
        (b) => b.textContent === "Regenerate").click()');
DSA::Wait::wait_until(sub { submitted($fake) == $requests + 2 }, 20,
                      'the second request');
answered();
is($b->js('document.querySelectorAll(".turn").length'), $n + 2,
   'a new answer replaces the old one');

$b->js('document.querySelector(".user footer button").click()');
is($b->js('document.activeElement.value.startsWith("!fake")'), 1,
   'a message can be edited');
$b->js('document.activeElement.select()');
$b->type("!fake\nt </think>\nt changed\n");
$b->press('Ctrl+Enter');
answered();
is($b->js('document.querySelectorAll(".turn").length'), 2,
   'which removes what followed');
is(text('.markdown'), 'changed', 'and has an answer');

$b->js('document.querySelector("#new-chat").click()');
is($b->js('document.querySelectorAll(".turn").length'), 0, 'a new chat');
is($b->js('document.activeElement.id'), 'prompt', 'has the focus');


# markup in the model's text, as text, as markdown, and in links

my $attack = join '\\n\\n',
    $img, '<script>window.xss=1</script>', "<svg/onload=window.xss=1>",
    '[a](javascript:window.xss=1)', '[b](JaVaScRiPt:window.xss=1)',
    '[c](data:text/html,<script>window.xss=1</script>)', '[d](//evil.test)',
    '[e](vbscript:x)', '[f](java\\\\nscript:alert(1))', '[g](/metrics)',
    "![h](javascript:x)", "`$img`", "**$img**", "- $img", "> $img",
    "| $img | b |\\n|---|---|\\n| <b onclick=x> | [x](javascript:x) |",
    "```$img\\n$img\\n```", '[ok](https://example.com/?a="onclick=x)';

send_text("!fake\nt $attack\nt </think>\nt $attack\n");
answered();
harmless('an answer');
like(text('.markdown'), qr/\Q$img\E/, 'the markup is shown as it is');
like(text('.markdown'), qr/\Q[a](javascript:window.xss=1)\E/,
     'and a link that is refused');
is_deeply($b->js('[...document.querySelectorAll(".markdown a")].map(
                  (a) => [a.href, a.rel, a.target])'),
          [ [ 'https://example.com/?a=%22onclick=x',
              'noopener noreferrer nofollow', '_blank' ] ],
          'the only link has a scheme that is allowed');
is($b->js('document.querySelectorAll(".table td").length'), 2, 'a table');


# names of models, and errors

open_page('/hostile/');
harmless('names of models');
is($b->js('document.querySelector("#model").options[0].textContent'), $img,
   'the name is shown as it is');
send_text('x');
$b->wait_js('document.querySelector(".notice.bad")');
like(text('.notice.bad'), qr/^400 \Q$img\E/, 'an error is shown as it is');
harmless('an error');


# tools: the calculator runs on the page, the results of others are written

sub call_of {
    my ($name, $argument, $value) = @_;

    return "!fake\n" . tokens('</think><｜DSML｜function_calls>\\n'
        . "<｜DSML｜invoke name=\"$name\">\\n<｜DSML｜parameter "
        . "name=\"$argument\" string=\"true\">$value</｜DSML｜parameter>\\n"
        . '</｜DSML｜invoke>\\n</｜DSML｜function_calls>') . "\n";
}


sub options {
    my (%values) = @_;

    $b->js('document.querySelector("#open-options").click()');

    for my $id (sort keys %values) {
        $b->js("document.querySelector('#option-$id').select()");
        $b->type($values{$id});
    }

    return;
}


open_page();
options(tools => '[{"type": 1}]');
like(text('#tools-error'), qr/^Expected \{"type"/, 'what a definition needs');
options(tools => '{');
like(text('#tools-error'), qr/^This is not JSON/, 'which is JSON');
options(tools => json_encode([ { type => 'function', function =>
    { name => 'look', parameters => { type => 'object' } } } ]));
is(text('#tools-error'), '', 'a right one');
$b->js('document.querySelector("#option-calculator").click()');
$b->press('Escape');
is($b->js('document.querySelector("#options").open'), 0, 'Esc closes them');
is(text('#summary'), 'calculator, 1 tool', 'what is switched on is shown');

$requests = submitted($fake);
send_text(call_of('calculator', 'expression', '2 + 3 * (4 - 6) ^ 2 / 8'));
answered();
is(text('.call b'), 'calculator', 'the name of the call');
is_deeply(json_decode($b->js('document.querySelector(".call pre")
                                .textContent')),
          { expression => '2 + 3 * (4 - 6) ^ 2 / 8' }, 'its arguments');
is(text('.result'), '{"result":3.5}', 'its result');
is(submitted($fake), $requests + 2, 'which the model got');
like((submitted($fake))[-1], qr/\{"result":3\.5\}/, 'in the next request');

for my $case ([ '1 / 0', 'the value is not finite' ],
              [ 'alert(1)', 'expected a number, not "a"' ],
              [ '2 3', 'unexpected "3"' ], [ '(1', 'expected ")"' ])
{
    my ($expression, $error) = @$case;

    send_text(call_of('calculator', 'expression', $expression));
    answered();
    is_deeply(json_decode(text('.result')), { error => $error },
              "calculator: $expression");
}

send_text(call_of('look', 'at', "$img</script>"));
$b->wait_js('document.querySelector(".call textarea")');
is($b->js('document.activeElement.ariaLabel'), 'Result of look',
   'the focus is on the field for the result');
$b->type("$img **x** [a](javascript:1)");
$b->press('Enter');
answered();
is(text('.result'), "$img **x** [a](javascript:1)", 'it is shown');
like((submitted($fake))[-1], qr/\Q$img\E \*\*x/, 'and sent');
harmless('calls and results');

send_text(call_of('look', 'at', 'x'));
$b->wait_js('document.querySelector(".call textarea")');
$b->press('Escape');
answered();
is($b->js('document.querySelectorAll(".call textarea").length'), 0,
   'Esc ends the wait for a result');


# what the page claims of the model

open_page('/demo/');
like(text('#about'), qr/demonstration model: .* 15 million parameters/,
     'the demonstration model is described');
open_page();
is(text('#about'), 'Answers come from the model that this server runs.',
   'another one is not');


# the keyboard alone, with a focus that is seen

$b->js('document.querySelector("#model").focus({ focusVisible: true })');

my @order;

for (1 .. 20) {
    $b->press('Tab') if @order;
    push @order, $b->js('document.activeElement.id
                         || document.activeElement.className
                         || document.activeElement.tagName');
    last if $order[-1] eq 'send';

    ok($b->js('{
        const node = document.activeElement.matches("#prompt")
            ? document.activeElement.parentElement : document.activeElement;
        const style = getComputedStyle(node);
        const border = getComputedStyle(document.body)
            .getPropertyValue("--line");
        style.outlineStyle === "solid" || node.matches(":focus-within.box")
    }'), "the focus on $order[-1] is seen");
}

is("@order", 'model new-chat open-options theme '
             . 'example example example example prompt send',
   'the order of the focus');

$b->press('Shift+Tab') for 1 .. 2;
$b->press('Enter');
answered();
like(text('.said'), qr/^What is 48/, 'an example starts a chat');
is($b->js('document.activeElement.id'), 'prompt', 'and the focus goes on');
$b->type('one');
$b->press('Shift+Enter');
$b->type('two');
$b->press('Ctrl+Enter');
answered();
is(text('.said'), "one\ntwo", 'Shift+Enter starts a line');
$b->press('Shift+Tab');
like($b->js('document.activeElement.textContent'), qr/^(?:Regenerate|Copy)$/,
     'the buttons of an answer are reached');


# light and dark, and enough contrast in both

my $contrast = <<'EOC';
    (() => {
        const light = (color) => {
            const [r, g, b] = color.match(/[\d.]+/g).map((c) => {
                const v = Number(c) / 255;
                return v <= 0.04045 ? v / 12.92
                                    : ((v + 0.055) / 1.055) ** 2.4;
            });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const behind = (node) => {
            for ( ; node !== null; node = node.parentElement) {
                const color = getComputedStyle(node).backgroundColor;
                if (!/, 0\)$|transparent/.test(color)) {
                    return color;
                }
            }
        };
        return [...document.querySelectorAll("body *")].filter((node) =>
            node.checkVisibility() && [...node.childNodes].some((child) =>
                child.nodeType === 3 && child.data.trim() !== ""))
            .map((node) => {
                const a = light(getComputedStyle(node).color);
                const b = light(behind(node));
                const ratio = (Math.max(a, b) + 0.05)
                              / (Math.min(a, b) + 0.05);
                return ratio < 4.5 ? `${node.tagName}.${node.className} `
                                     + ratio.toFixed(1) : null;
            }).filter((found) => found !== null);
    })()
EOC

my $ground = 'getComputedStyle(document.body).backgroundColor';
my %ground;

for my $scheme (qw/ light dark /) {
    $b->scheme($scheme);
    $ground{$scheme} = $b->js($ground);
    is_deeply($b->js($contrast), [], "$scheme: contrast of all texts");
}

isnt($ground{light}, $ground{dark}, 'the system has a theme');
$b->scheme('dark');
$b->js('document.querySelector("#theme").click()');
is($b->js($ground), $ground{light}, 'the button switches to light');
$b->js('document.querySelector("#theme").click()');
$b->scheme('light');
is($b->js($ground), $ground{dark}, 'and to dark');
$b->visit('about:blank');
$b->visit("$origin/");
is($b->js($ground), $ground{dark}, 'which is remembered');


# a phone

open_page();
$b->size(360, 640, 1);
is($b->js('document.documentElement.scrollWidth'), 360,
   'a phone: nothing is wider than the screen');
send_text("!fake\nt </think>\nt | a | b |\\n|---|---|\\n| "
          . ('x' x 80) . " | y |\\n\\n```\\n" . ('code ' x 40)
          . "\\n```\\n\n");
$b->js('document.querySelector("#send").click()');
answered();
is($b->js('document.documentElement.scrollWidth'), 360,
   'a phone: nor is an answer');
$b->size(1200, 800);


# the pieces in which a text arrives do not change what it becomes

my $sample = "Text *one* two_three_ `a``b`\\n- a\\n- b\\n  - c\\n\\n- d\\n"
    . "\\n3. x\\n4. y\\n\\n> q\\n> r\\n\\n| a | b |\\n|:--|--:|\\n| 1 | **2** |"
    . "\\n| 3 | 4 |\\n\\n~~~c\\nint x;\\n\\n# no\\n~~~\\n## Head ##\\n***both"
    . "*** [l](https://a.test/x_(y)) https://b.test/.\\n***\\nend  \\nbreak";
my @html;

for my $pieces ([ $sample ], [ split /(?<!\\)(?=.)/, $sample ]) {
    open_page();
    send_text(join '', "!fake\nt </think>\n",
              map { 's ' . s/^ $/\\s/r . "\n" } @$pieces);
    answered();
    push @html, $b->js('document.querySelector(".markdown").innerHTML');
}

is($html[1], $html[0], 'letter by letter, or all at once');
like($html[0], qr{<h3>Head</h3>}, 'a heading');
like($html[0], qr{<ul><li><p>b</p><ul><li>c</li></ul></li>|<li>.*<ul>}s,
     'a list in a list');
like($html[0], qr{<ol start="3">}, 'a list with its number');
like($html[0], qr{<td class="end"><strong>2</strong></td>}, 'a cell');
like($html[0], qr{<strong><em>both</em></strong>|<em><strong>both}, 'both');
like($html[0], qr{href="https://a\.test/x_\(y\)"}, 'a link');
like($html[0], qr{>https://b\.test/</a>\.}, 'a bare link');
like($html[0], qr{int x;\n\n# no}, 'code');
like($html[0], qr{two_three_}, 'underscores within a word');


# The work of an update does not grow with the answer: the engine sends twenty
# equal parts, each as one token, and the next one when the page has drawn the
# last.  The test counts the nodes that an update adds and removes, and the
# characters that regular expressions are applied to.  A list that grows is
# parsed again as a whole, and only its new items are drawn.

my $parts = 20;

for my $kind (
    [ sections => '## Part\\n\\n' . ('word ' x 40) . '\\n\\n```c\\n'
        . ('int x;\\n' x 20) . '```\\n\\n' . ('- item\\n' x 20) . '\\n',
      1, qw/ nodes characters / ],
    [ 'one list' => '- item\\n' x 20, 0, 'nodes' ])
{
    my ($name, $text, $heads, @counted) = @$kind;

    open_page();
    $b->js(<<'EOC');
        window.work = { nodes: 0, characters: 0 };

        for (const name of ["exec", "test"]) {
            const method = RegExp.prototype[name];

            RegExp.prototype[name] = function (text) {
                work.characters += String(text).length;
                return method.call(this, text);
            };
        }

        new MutationObserver((records) => {
            const count = (node) => 1 + [...node.childNodes].reduce(
                (n, child) => n + count(child), 0);

            for (const record of records) {
                for (const node of [...record.addedNodes,
                                    ...record.removedNodes])
                {
                    work.nodes += count(node);
                }
            }
        }).observe(document.querySelector("main"),
                   { childList: true, subtree: true });
        0
EOC

    send_text("!fake\nt </think>\n" . "wait\ns $text\n" x $parts);

    my %work;

    for my $part (1 .. $parts) {
        my $h3 = $heads * $part;

        $b->js('work.nodes = work.characters = 0');
        ctl($fake, 'go');
        $b->wait_js("document.querySelectorAll('.markdown h3').length === $h3
                     && document.querySelectorAll('.markdown li').length
                        === 20 * $part");

        my $counts = $b->js('work');

        push @{ $work{$_} }, $counts->{$_} for keys %$counts;
    }

    answered();

    # a part is drawn in one update; one that is split may cost twice as much

    for my $what (@counted) {
        my @counts = @{ $work{$what} };

        cmp_ok($counts[1], '>=', 40, "$name: $what are counted");
        is_deeply([ grep { $_ > 2 * $counts[1] } @counts[2 .. $parts - 1] ],
                  [], "$name: no part costs more $what than the second one")
            or diag("@counts");
    }
}


# an answer of 10,000 tokens: no task occupies the page for a second

my $sections = join '', map {
    "t \\n\\n## Part\\n\\n\nr 200 word \nt \\n\\n```c\\n\nr 150 int x;\\n\n"
    . "t ```\\n\\n\nr 145 - item\\n\n" } 1 .. 10;

for my $kind (
    [ text => $sections, 'document.querySelectorAll(".markdown h3").length
        === 10 && document.querySelectorAll(".markdown li").length === 1450' ],
    [ list => "r 5000 - item\\n\n",
      'document.querySelectorAll(".markdown li").length === 5000' ])
{
    my ($name, $half, $middle) = @$kind;

    open_page();

    # the engine waits at the beginning and in the middle

    send_text("!fake\nt </think>\nwait\n${half}wait\n$half");
    $b->wait_js('document.querySelector("[aria-busy]")');

    my $longest = $b->longest_task(sub {
        for my $done (sub { $b->wait_js($middle, 240) },
                      sub { answered(240) })
        {
            ctl($fake, 'go');
            $done->();
        }
    });

    like(text('.usage'), qr/ (?:9,9|10,0)\d\d out/, "$name: 10,000 tokens");
    cmp_ok($longest, '<', DSA::Wait::slow(1000),
           "$name: no task is long (CPU ms)");
    note("$name: longest task $longest ms");
}


# a key

open_page('/keys/');
$b->wait_js('document.querySelector("#options").open');
is($b->js('document.activeElement.id'), 'option-key',
   'a 401 asks for the key');
$b->type('sk-secret');
$b->press('Enter');
$b->wait_js('document.querySelector("#model").value === "fake-model"');
is($b->js('document.querySelector("#options").open'), 0,
   'with the key there are models');
send_text("!fake\nt </think>\nt hello\n");
answered();
is(text('.markdown'), 'hello', 'and answers');
is($b->js('JSON.stringify({ ...localStorage }).includes("sk-secret")
           || location.href.includes("sk-secret")
           || document.cookie !== ""'), 0,
   'the key is not in localStorage, the address or a cookie');
is($b->js('sessionStorage.getItem("dsa-key")'), 'sk-secret',
   'it is in sessionStorage');


is($b->js('JSON.stringify({ ...localStorage }).includes("hello")'), 0,
   'nor is the chat in localStorage');


# another key is another chat

$b->visit("$origin/keys/");
$b->wait_js('document.querySelectorAll(".turn").length === 2');
pass('the chat of the same key is there again');
$b->js('document.querySelector("#open-options").click()');
$b->js('document.querySelector("#option-key").select()');
$b->type('sk-other');
$b->press('Enter');
$b->wait_js('document.querySelectorAll(".turn").length === 0');
is($b->js('JSON.stringify({ ...sessionStorage }).includes("hello")'), 0,
   'the chat of another key is not kept');


# an error within a stream is named by its code

open_page();
send_text("!fake\nt </think>\nt begun\nwait\nerror internal x\n");
$b->wait_js('document.querySelector(".markdown")?.textContent === "begun"');
ctl($fake, 'go');
answered();
is(text('.markdown'), 'begun', 'the text before an error stays');
is(text('.notice.bad b'), 'internal_error ', 'an error in a stream has a name');
unlike(text('.notice.bad'), qr/200/, 'and not the status of the stream');


# a reload keeps the chat

open_page();
$b->js('document.querySelector("#option-calculator").click()');
send_text("!fake\nt I wonder\nt </think>\nt **one** $img\n");
answered();
send_text(call_of('calculator', 'expression', '2 + 3'));
answered();
send_text("!fake\nt </think>\nt begun\nhold\n");
$b->wait_js('[...document.querySelectorAll(".markdown")].at(-1)
             .textContent === "begun"');

my $shown = '[...document.querySelectorAll(".said, .thought, .markdown,'
            . ' .call b, .call .result")].map((node) => node.innerHTML)';
my $before = $b->js($shown);

$b->visit("$origin/");
$b->wait_js('document.querySelectorAll(".turn").length === 7');
is_deeply($b->js($shown), $before, 'a reload keeps the chat');
is(text('.thinking summary'), 'Thought', 'with its thinking');
is($b->js('document.querySelector("#chat").matches(".empty")'), 0,
   'without the welcome');
harmless('a chat that is kept');

send_text("!fake\nt </think>\nt again\n");
answered();
is(text('.markdown'), 'again', 'which goes on');
like((submitted($fake))[-1], qr/I wonder.*2 \+ 3.*"result":5.*begun.*again/,
     'with all its messages');

$b->visit("$origin/hostile/");
is($b->js('document.querySelectorAll(".turn").length'), 0,
   'a page at another address has its own chat');
$b->visit("$origin/");
$b->wait_js('document.querySelectorAll(".turn").length === 9');
$b->js('document.querySelector("#new-chat").click()');
$b->visit("$origin/");
is($b->js('document.querySelectorAll(".turn").length'), 0,
   'a new chat is not kept');

for my $stored ('{', '1', '[1]', '[{"message":{"role":"user"}}]', '{"a":1}',
                '[{"message":{"role":"assistant","content":"x",'
                . '"tool_calls":[{"id":1}]},"thought":""}]')
{
    $b->js('sessionStorage.setItem("dsa-chat /", ' . json_encode($stored)
           . '), 0');
    $b->visit("$origin/");
    is($b->js('document.querySelectorAll(".turn").length'), 0,
       "what is not a chat is not shown: $stored");
}

# a chat that is too long, or a browser that stores nothing

open_page();
send_text("!fake\nt </think>\nt short\n");
answered();
send_text("!fake\nt </think>\nr 6000 "
          . ('word ' x 40) . "\n");
answered(240);
is(text('.answer .notice'), 'This chat is lost when the page is loaded again.',
   'a chat that is too long has a note');
is($b->js('sessionStorage.getItem("dsa-chat /")'), undef, 'and is not kept');

open_page();
$b->js('Storage.prototype.setItem = () => { throw new Error("full"); }, 0');
send_text("!fake\nt </think>\nt short\n");
answered();
is(text('.markdown'), 'short', 'a browser that stores nothing has answers');
is($b->js('document.querySelectorAll(".answer .notice").length'), 1,
   'and the note');


is_deeply([ map { $_->{exceptionDetails}{text} }
            $b->events('Runtime.exceptionThrown') ], [],
          'the page has thrown nothing');
is_deeply([ grep { $_->{entry}{text} =~ /Content Security|Trusted/ }
            $b->events('Log.entryAdded') ], [],
          'its policy refused nothing');

$b->stop;
$t->done;
