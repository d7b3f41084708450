# Copyright (C) The nginx-dsa authors
#
# The dashboard of dsa_console in a headless Chromium: where it appears, what it
# shows of dsa_status, and the percentiles that it computes.

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

my $t = DSA::Test->new('console-dashboard');
my $fake = $t->start_fake();

$t->start_redis();
$t->start_nginx(server => 'location = / { dsa_console v32; }
    location = /status { dsa_status; }
    location = /closed/ { dsa_console v32; }
    location = /closed/status { deny all; dsa_status; }
    location = /made/ { dsa_console v32; }
    location = /made/status { default_type application/json;
                              alias %%DIR%%/status; }
    location = /none/ { dsa_console v32; }');

my $origin = 'http://127.0.0.1:' . $t->port;
my $b = DSA::Browser->start($t->path('chromium'));

$b->size(1200, 800);


sub texts {
    my ($selector) = @_;

    return $b->js('[...document.querySelectorAll('
                  . json_encode($selector) . ')].map((n) => n.textContent)');
}


# The tiles as a hash.

sub tiles {
    my ($names, $values) = map { texts($_) } '.tiles dt', '.tiles dd';
    my %tiles;

    @tiles{@$names} = @$values;

    return \%tiles;
}


# The last values in the legend of a chart.

sub legend {
    my ($title) = @_;

    return $b->js('[...[...document.querySelectorAll("figure")].find((f) =>'
                  . ' f.querySelector("h3").textContent === '
                  . json_encode($title) . ').querySelectorAll(".legend b")]'
                  . '.map((n) => n.textContent)');
}


# The rows of a table.

sub rows {
    my ($title) = @_;

    return $b->js('[...[...document.querySelectorAll("#tables section")]'
                  . '.find((s) => s.querySelector("h3").textContent === '
                  . json_encode($title) . ').querySelectorAll("tbody tr")]'
                  . '.map((r) => [...r.cells].map((c) => c.textContent))');
}


# only where status answers

for my $uri ('/closed/', '/none/') {
    $b->visit("$origin$uri");
    $b->wait_js('document.querySelector("#model").options.length > 0');
    $b->js('fetch("status").then(() => 0, () => 0)');
    is($b->js('document.querySelector(".views").checkVisibility()'), 0,
       "$uri has no dashboard");
}

$b->visit("$origin/#dashboard");
$b->wait_js('document.querySelector(".tiles dd")');
is($b->js('document.querySelector("#chat").checkVisibility()'), 0,
   'the address names the view');
$b->js('document.querySelector("#to-chat").click()');
$b->wait_js('document.querySelector("#prompt").checkVisibility()');
is($b->js('document.querySelector("#to-chat").ariaCurrent'), 'page',
   'the chat is a click away');
$b->js('document.querySelector("#to-dashboard").click()');
$b->wait_js('document.querySelector(".tiles").checkVisibility()');
pass('and back');


# what the real endpoint reports

is(texts('.state .light')->[0], 'The engine is up', 'the engine is up');
like(texts('.state p')->[1], qr/^Redis is connected · up for .* · version \d/,
     'Redis, uptime and version');

ctl($fake, 'load 3 2');
$b->wait_js('[...document.querySelectorAll(".tiles dd")].map((n) =>
             n.textContent).join(" ").includes("3 2")');
is_deeply([ @{ tiles() }{qw/ Running Waiting /} ], [ 3, 2 ],
          'running and waiting');
is_deeply(legend('Requests'), [ 3, 2 ], 'on the chart as well');

my ($engine) = @{ rows('Engines') };
is_deeply([ @$engine[0 .. 4] ], [ 'engine0.sock', 'up', 'fake-model', 3, 2 ],
          'the engine in its table');

$t->post('/v1/chat/completions',
         script("rate 2\nprompt 400\ncached 100\nr 200 x\n"));
$b->wait_js('[...document.querySelectorAll(".tiles dd")].at(-1).textContent
             !== "–"');
is(tiles()->{'Cache hits'}, '25 %', 'the hit rate of 100 of 400 tokens');
like(legend('Tokens per second')->[0], qr/^[1-9]/, 'tokens are counted');
like(legend('Time between tokens')->[0], qr/^\d+(?:\.\d)? ms$/,
     'their intervals are measured');

ctl($fake, 'drain 1');
$b->wait_js('document.querySelector("section .light").textContent
             === "draining"');
pass('draining is shown');
$fake->stop('KILL');
$b->wait_js('document.querySelector(".state .light.bad") !== null');
is(texts('.state .light')->[0], 'No engine is up', 'and death');


# Percentiles of what is counted between two reads; tenants and money; names
# that are markup.  100 intervals: 50 up to 10 ms, 45 up to 20, 5 up to 40.

my $img = '<img src=x onerror=window.xss=1>';
my $bounds = [ 10, 20, 40 ];


sub status {
    my ($time, $counts, %more) = @_;

    my $hist = { bounds => $bounds, counts => $counts, sum => 0 };

    write_file($t->path('status.new'), json_encode({
        time => 1000 + $time, version => '0.1', uptime => 93784 + $time,
        requests => { in_flight => 5, total => 10 * $time,
                      by_status => {}, cancelled => {} },
        tokens => { prompt => 100 * $time, completion => 50 * $time,
                    reasoning => 0,
                    cached => { gpu => 60 * $time, host => 10 * $time,
                                redis => 5 * $time } },
        latency => { map { $_ => $hist }
                     qw/ ttft inter_token duration queue / },
        engines => [
            { pool => 'v32', engine => "unix:/run/$img", model => $img,
              up => JSON::PP::true, draining => JSON::PP::false,
              heartbeat_ms => 12, running => 4, waiting => 1, steps => 0,
              pages => 200, pages_used => 50, preemptions => 0,
              completion_tokens => 0,
              tiers => { gpu => { pages => 200, used => 50,
                                  hit_tokens => 70000 } } },
            { pool => 'v32', engine => 'unix:/run/b',
              up => JSON::PP::false },
            { pool => 'other', engine => 'unix:/run/c', running => 100,
              waiting => 100, up => JSON::PP::true } ],
        tenants => [ { tenant => 'a' x 32, key => 'key_1', name => $img,
                       running => 3, waiting => 1, requests => 7,
                       tokens => 1234567, cost => '0.5',
                       spent => { day => '0.1', month => '0.3',
                                  total => '0.5' } },
                     { tenant => 'b' x 32, running => 0, waiting => 0,
                       requests => 1, tokens => 5 } ],
        money => { currency => 'USD', miss => '1', hit => '0.5',
                   output => 0.01 * $time },
        %more }));
    rename $t->path('status.new'), $t->path('status') or die "rename: $!\n";

    return;
}


status(0, [ 0, 0, 0, 0 ]);
$b->visit('about:blank');
$b->visit("$origin/made/#dashboard");
$b->wait_js('document.querySelector(".tiles dd")');
is(legend('Time to first token')->[0], '–', 'no interval, no percentile');
is(texts('.state .light')->[0], '1 of 2 engines are up',
   'engines of other pools do not count');

status(10, [ 50, 45, 5, 0 ]);
$b->wait_js('document.querySelector(".legend b").textContent !== "–"');
is_deeply(legend('Time to first token'), [ '10 ms', '20 ms', '36 ms' ],
          'median, 95 % and 99 %');
is_deeply(legend('Time between tokens'), [ '10 ms', '20 ms', '36 ms' ],
          'in each histogram');
is_deeply(legend('Tokens per second'), [ 50, 100 ], 'tokens in 10 seconds');
is_deeply(legend('Input tokens found in the cache'), [ '75 %' ],
          'hits of all tiers');
is_deeply(legend('Money per hour, USD'), [ '36' ], 'money: 0.01 a second');
is_deeply(tiles(), {
    'Output tokens/s' => 50, 'Requests/s' => 10, 'Running' => 4,
    'Waiting' => 1, 'First token, median' => '10 ms',
    'Token gap, median' => '10 ms', 'Cache hits' => '75 %',
    'Cost, USD' => '1.60' }, 'the tiles');

# 40 seconds later only what came in the last 30 counts: 10 up to 20 ms

status(50, [ 50, 55, 5, 0 ]);
$b->wait_js('[...document.querySelectorAll(".legend")][2].textContent
             .includes("median 15 ms")');
is_deeply(legend('Time to first token'), [ '15 ms', '20 ms', '20 ms' ],
          'only the last 30 seconds count');

is_deeply(rows('Tenants'), [
    [ $img, '', 3, 1, 7, '1.2M', '0.5', '0.1', '0.3' ],
    [ 'b' x 12, '', 0, 0, 1, 5, '–', '–', '–' ] ], 'tenants');
is_deeply($b->js('[...document.querySelectorAll("section .bar rect")].map(
                  (r) => r.getAttribute("width"))'),
          [ '100%', '25%', '100%', '75%', '25%', '100%', '0%', '0%' ],
          'bars: 50 of 200 pages, 3 and 1 of 4 requests');
is_deeply([ map { $_->[1] } @{ rows('Engines') } ], [ 'up', 'down' ],
          'the state of each engine');
is_deeply([ @{ rows('Pages of the KV cache')->[0] }[1, 3, 4] ],
          [ 'Engine', '50 of 200', '70.0k' ], 'pages');
like(texts('.state p')->[1], qr/up for 1 d 2 h/, 'the uptime');
is($b->js('document.querySelectorAll("main img").length'), 0,
   'names are text');
is($b->js('window.xss ?? null'), undef, 'no script ran');

# the server has started anew: its counters are smaller than before

status(60, [ 1, 0, 0, 0 ], tokens => { prompt => 0, completion => 1,
    reasoning => 0, cached => { gpu => 0, host => 0, redis => 0 } });
$b->wait_js('[...document.querySelectorAll(".legend b")][0].textContent
             === "–"');
is_deeply(legend('Time to first token'), [ ('–') x 3 ],
          'counters that fell give no figure');


# the pointer and the keys show earlier values

$b->js('document.querySelector(".plot").focus()');
$b->press('Home');
is(texts('.when')->[0], '1 min ago', 'the first value by key');
is_deeply(legend('Tokens per second'), [ '–', '–' ], 'which has no rate');
$b->press('ArrowRight');
is_deeply(legend('Tokens per second'), [ 50, 100 ], 'the second');
like($b->js('document.querySelector(".plot").ariaLabel'),
     qr/^Tokens per second: output 50, input 100$/,
     'and for a screen reader');

for my $width (1200, 360) {
    $b->size($width, 800, $width < 400);
    is($b->js('document.documentElement.scrollWidth'), $width,
       "$width pixels: nothing is wider than the screen");
}

unlink $t->path('status');
$b->wait_js('document.querySelector(".state .light").textContent
             === "The server does not answer"');
pass('a server that does not answer is reported');

is_deeply([ map { $_->{exceptionDetails}{exception}{description} }
            $b->events('Runtime.exceptionThrown') ], [],
          'the page has thrown nothing');

$b->stop;
$t->done;
