# Copyright (C) The nginx-dsa authors
#
# OpenAI's Codex (npm @openai/codex), with no setting but the address, the key
# and the name of the model: a command, a tool of an MCP server, an answer with
# a schema.  What the model writes is dictated.

use strict;
use warnings;
use utf8;

use lib 't/lib';
use DSA::Fake;
use DSA::Node qw/ installed /;
use DSA::Test;
use Test::More;

binmode Test::More->builder->$_, ':utf8'
    for qw/ output failure_output todo_output /;

my $t = DSA::Test->new('codex');
my $dir = installed($t, 't/codex', 'mcp.mjs');
my $fake = $t->start_fake('context=131072');

$t->start_nginx(http => 'client_max_body_size 8m;');

my $runs = 0;
my $home = $t->path('home');
my $work = $t->path('work');
mkdir $_ or die "$_: $!\n" for $home, $work;

# Codex waits a second for servers that are not required, and then leaves their
# tools out: https://github.com/openai/codex/issues/38689

DSA::Test::write_file("$home/config.toml", <<"END");
model = "deepseek-chat"
openai_base_url = "http://127.0.0.1:@{[ $t->port ]}/v1"

[mcp_servers.text]
command = "node"
args = ["$dir/mcp.mjs"]
required = true
startup_timeout_sec = 120
END

# The answers come from files, each of which Codex's commands can select as the
# next one.

sub answers {
    my ($name, $lines) = @_;

    utf8::encode($lines);
    return DSA::Test::write_file($t->path($name), "$lines\n");
}

# Runs Codex; returns its exit status and its output.

sub codex {
    my ($answers, @args) = @_;

    ctl($fake, "script $answers");

    my $proc = DSA::Process->start(
        name => 'codex' . $runs++, dir => $t->dir,
        argv => [ 'sh', '-c', 'cd "$0" && CODEX_HOME=$1 && codex=$2 && shift 2 '
                  . '&& export CODEX_HOME && OPENAI_API_KEY=sk-any exec '
                  . 'node "$codex" exec --skip-git-repo-check '
                  . '--dangerously-bypass-approvals-and-sandbox "$@" '
                  . '< /dev/null', $work, $home,
                  "$dir/node_modules/\@openai/codex/bin/codex.js", @args ]);

    push @{ $t->{procs} }, $proc;

    my $status = $proc->wait_end(300);

    return (defined $status ? $status >> 8 : 'it runs on', $proc->output);
}

sub prompts {
    my @prompts = map { / prompt=(.*)$/ } submitted($fake);
    utf8::decode($_) for @prompts;
    return @prompts;
}


# A command, whose output is in the next prompt.

my $end = answers('end', 't All is done.');
my $sock = $fake->sock . '.ctl';
my $select = "perl -MIO::Socket::UNIX -e 'my \$s = IO::Socket::UNIX->new("
             . "Peer => q($sock)); syswrite \$s, qq(script $end\\\\n); "
             . "print scalar(<\$s>), 6 * 7'";
my ($rc, $out) = codex(answers('command', tool_calls(
                               [ 'exec_command', 'cmd', 'true', $select ])),
                       'Compute it.');

is($rc, 0, 'a command: exit status') or diag($out);
like($out, qr/All is done\./, 'its last message');

my @prompts = prompts();
is(scalar @prompts, 2, 'two requests');
like($prompts[0], qr/"name": "exec_command"/, 'the tools of Codex');
like($prompts[0], qr/"name": "multi_agent_v1\.spawn_agent"/,
     'those in a namespace');
unlike($prompts[0], qr/web_search/, 'no hosted tool');
like($prompts[1], qr{<result>.*?42.*?</result>}, 'the output of the command');


# A tool of an MCP server.  Its result selects no answer, so the first answer
# has to be different the second time.

my $tool = 'mcp__text.reverse';
like($prompts[0], qr/"name": "\Q$tool\E"/, 'a tool of the MCP server')
    or diag(join ' ', $prompts[0] =~ /"name": "(.*?)"/g);

($rc, $out) = codex(answers('mcp', tool_calls(
                            [ 'exec_command', 'cmd', 'true', $select ],
                            [ $tool, 'text', 'true', 'stressed' ])),
                    'Reverse it.');

is($rc, 0, 'an MCP tool: exit status') or diag($out);
@prompts = prompts();
is(scalar @prompts, 4, 'two more requests');
like($prompts[3], qr{<result>.*?desserts.*?</result>}, 'its result');
like($prompts[3], qr/invoke name="\Q$tool\E"/, 'the call in the history');


# An answer with a schema.

my $schema = DSA::Test::write_file($t->path('schema.json'), json_encode({
    type => 'object', properties => { n => { type => 'integer' } },
    required => [ 'n' ], additionalProperties => JSON::PP::false }));

($rc, $out) = codex(answers('json', 't {"n": 5}'), '--output-schema', $schema,
                    'Answer.');

is($rc, 0, 'a schema: exit status') or diag($out);
like($out, qr/^\{"n": 5\}$/m, 'the answer');
like((submitted($fake))[-1], qr/ grammar=.*"n": ?\{"type": ?"integer"\}/,
     'the engine has the schema');


# A conversation that exceeds the limit is compacted: Codex requests it by an
# item, and goes on with the encrypted summary in place of the calls.

my $config = DSA::Test::read_file("$home/config.toml");
DSA::Test::write_file("$home/config.toml",
                      "model_auto_compact_token_limit = 6000\n$config");

my $before = () = prompts();

($rc, $out) = codex(answers('long', tool_calls(
                            [ 'exec_command', 'cmd', 'true',
                              "seq 1 3000; $select" ])), 'Count to 3000.');

is($rc, 0, 'a long conversation: exit status') or diag($out);
like($out, qr/All is done\./, 'its last message');

@prompts = prompts();
@prompts = @prompts[$before .. $#prompts];
is(scalar @prompts, 3, 'three requests');
like($prompts[1], qr{2999\\n3000\\n.*This\ conversation\ will\ leave\ the
                     \ model's\ context.*Summary:}xs, 'a compaction');
like($prompts[2], qr/Count to 3000\..*This is a summary of it:.*All is done\./,
     'the summary behind the message of the user');
unlike($prompts[2], qr/2999/, 'without the output of the command');

$t->done;
