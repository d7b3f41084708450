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
    $b->wait_js('document.querySelectorAll(".answer").length > 0'
                . ' && !document.querySelector("[aria-busy]")'
                . ' && document.querySelector("#send").ariaLabel === "Send"');

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


is_deeply([ map { $_->{exceptionDetails}{text} }
            $b->events('Runtime.exceptionThrown') ], [],
          'the page has thrown nothing');
is_deeply([ grep { $_->{entry}{text} =~ /Content Security|Trusted/ }
            $b->events('Log.entryAdded') ], [],
          'its policy refused nothing');

$b->stop;
$t->done;
