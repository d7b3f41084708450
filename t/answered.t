# Copyright (C) The nginx-dsa authors
#
# Histories that end with an answer, as agents send them that ask once more for
# their result in a form: the model begins another answer behind it, in both
# families and all OpenAI shapes, and the next request has that prompt as its
# beginning.

use strict;
use warnings;
use utf8;

use Test::More;

use lib 't/lib';
use DSA::Fake;
use DSA::Test;

binmode Test::More->builder->$_, ':utf8'
    for qw/ output failure_output todo_output /;

my $t = DSA::Test->new('answered');

$t->start_redis();

my %fake = (deepseek => $t->start_fake('model=fake'),
            glm => $t->start_fake('model=fake', 'family=glm-5.2'));

$t->start_nginx(
    conf => '%%GLOBALS%%
             events { }
             http { %%HTTP%%
                 dsa_redis %%REDIS%% ttl=1h timeout=10s;
                 dsa_pool deepseek { engine unix:%%SOCK%%; }
                 dsa_pool glm { engine unix:%%SOCK1%%; }
                 server { listen 127.0.0.1:%%PORT%%;
                     location /deepseek/ { dsa_pass deepseek; }
                     location /glm/ { dsa_pass glm; } } }');

wait_until(sub { $t->get('/glm/v1/responses/resp_' . '0' x 32)->{status}
                 == 404 }, 20, 'Redis');

my %thinking = (thinking => { type => 'enabled' });
my %chat = (thinking => { type => 'disabled' });


sub user { return { role => 'user', content => $_[0] } }


sub assistant {
    my ($text, %more) = @_;

    return { role => 'assistant', content => $text, %more };
}


# The prompt of the last request that an engine got, without what is in front
# of the first question.

sub prompt {
    my ($family) = @_;

    my ($prompt) = (submitted($fake{$family}))[-1]
                   =~ / prompt=(.*?)(?: (?:stop|grammar)=.*)?$/;
    utf8::decode($prompt);
    $prompt =~ s/^.*?(?=\[<.user.>\])//is;

    return $prompt;
}


sub answer {
    my ($family, $api, $body, $name) = @_;

    my $r = $t->post("/$family/v1/$api", { model => 'fake', %$body });
    is($r->{status}, 200, "$family, $api: $name") or diag($r->{body});

    return $r->{json};
}


my %cue = (
    deepseek => { thinking => '[<｜end▁of▁sentence｜>][<｜Assistant｜>][<think>]',
                  chat => '[<｜end▁of▁sentence｜>][<｜Assistant｜>][</think>]' },
    glm => { thinking => '[<|assistant|>][<think>]',
             chat => '[<|assistant|>][<think>][</think>]' }
);

# what the engine writes: the question in a history has the script of the
# answer

my $script = "!fake\nt Done.";

for my $family (qw/ deepseek glm /) {
    my $cue = $cue{$family};

    # a chat, in both modes: the answer is there, and another one begins

    for my $mode (qw/ chat thinking /) {
        my @mode = $mode eq 'chat' ? %chat : %thinking;

        answer($family, 'chat/completions',
            { @mode, messages => [ user($script), assistant('One.') ] },
            "$mode: it ends with an answer");

        my $prompt = prompt($family);

        like($prompt, qr/One\.\Q$cue->{$mode}\E$/,
             "$family, $mode: another answer begins");

        # the next turn has the second answer where the model wrote it

        answer($family, 'chat/completions',
            { %chat, messages => [ user($script), assistant('One.'),
                                   assistant('Two.'), user($script) ] },
            "$mode: two answers in a history");

        like(prompt($family), qr/One\..*\Q$cue->{chat}\E.*Two\./,
             "$family: each one has its beginning");
    }

    # reasoning stays, because no question of the user follows

    answer($family, 'chat/completions',
        { %thinking, messages => [ user($script),
            assistant('One.', reasoning_content => 'Because.') ] },
        'with reasoning');
    like(prompt($family), qr/\[<think>\]Because\.\[<\/think>\]One\./,
         "$family: the reasoning is in the prompt");

    # without it the model reads that there was none

    answer($family, 'chat/completions',
        { %thinking, messages => [ user($script), assistant('One.') ] },
        'without reasoning');
    like(prompt($family), qr/\[<think>\]\[<\/think>\]One\./,
         "$family: it is empty");

    # a prefix is still continued

    answer($family, 'chat/completions',
        { %chat, messages => [ user($script),
                               assistant('One', prefix => \1) ] }, 'a prefix');
    like(prompt($family), qr/One$/, "$family: it is left open");

    # Anthropic's shape continues a last answer as well

    answer($family, 'messages',
        { max_tokens => 9, messages => [ user($script), assistant('One') ] },
        'a prefill');
    like(prompt($family), qr/One$/, "$family: it is left open, too");

    # items of the Responses API, and a stored response behind which nothing
    # but an answer follows

    answer($family, 'responses',
        { reasoning => { effort => 'none' },
          input => [ user($script), assistant('One.') ] }, 'items');
    like(prompt($family), qr/One\.\Q$cue->{chat}\E$/,
         "$family: another answer begins behind the items");

    my $stored = answer($family, 'responses',
                     { reasoning => { effort => 'none' }, input => $script },
                     'stored');
    my $before = prompt($family);

    answer($family, 'responses',
        { reasoning => { effort => 'none' }, input => [ assistant('One.') ],
          previous_response_id => $stored->{id} }, 'behind it');
    like(prompt($family), qr/^\Q$before\E.*Done\..*One\.\Q$cue->{chat}\E$/,
         "$family: its prompt continues");

    # a stored conversation

    my $id = $t->post("/$family/v1/conversations", {})->{json}{id};

    answer($family, 'chat/completions',
        { %chat, conversation => $id,
          messages => [ user($script), assistant('One.') ] },
        'in a conversation');
    $before = prompt($family);

    answer($family, 'chat/completions',
        { %chat, conversation => $id, messages => [ user($script) ] },
        'the next turn');
    like(prompt($family), qr/^\Q$before\Eecho: One\./,
         "$family: the conversation continues the prompt");
}

# what is not an answer is refused as before

my $r = $t->post('/glm/v1/chat/completions', { model => 'fake',
    messages => [ user('q'), { role => 'system', content => 's' } ] });
is($r->{status}, 400, 'a system message at the end');
like($r->{body}, qr/must be a user, tool or assistant message/, 'its error');

$t->done;
