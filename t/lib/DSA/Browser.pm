package DSA::Browser;

# Copyright (C) The nginx-dsa authors
#
# A headless Chromium with one page, driven by the DevTools protocol over a pair
# of pipes: messages are JSON that ends with a NUL.

use strict;
use warnings;

use Fcntl qw/ F_DUPFD /;
use IO::Handle;
use IO::Select;
use MIME::Base64 qw/ decode_base64 /;
use POSIX qw/ dup2 /;
use Time::HiRes qw/ time /;

use DSA::Test;
use DSA::Wait qw/ wait_until slow /;

my %keys = (
    Enter  => { code => 'Enter', windowsVirtualKeyCode => 13, text => "\r" },
    Escape => { code => 'Escape', windowsVirtualKeyCode => 27 },
    Tab    => { code => 'Tab', windowsVirtualKeyCode => 9 },
    Home   => { code => 'Home', windowsVirtualKeyCode => 36 },
    ArrowRight => { code => 'ArrowRight', windowsVirtualKeyCode => 39 },
    ' '    => { code => 'Space', windowsVirtualKeyCode => 32, text => ' ' },
);

my %modifiers = (Alt => 1, Ctrl => 2, Meta => 4, Shift => 8);


# The path of a browser, or undef.  DSA_CHROMIUM may name one.

sub find_chromium {
    my ($browser) = grep { -x }
        $ENV{DSA_CHROMIUM} // (),
        map { my $dir = $_; map { "$dir/$_" }
              qw/ chromium chromium-browser google-chrome chrome
                  chrome-headless-shell / }
        split /:/, $ENV{PATH};

    return $browser;
}


# Starts the browser with its files in this directory.

sub start {
    my ($class, $dir) = @_;

    my $browser = find_chromium() or die "no chromium\n";

    pipe my $child_in, my $out or die "pipe: $!\n";
    pipe my $in, my $child_out or die "pipe: $!\n";

    my $pid = fork // die "fork: $!\n";

    if ($pid == 0) {
        setpgrp;

        # away from 3 and 4 first, so that neither replaces the other

        my $r = fcntl($child_in, F_DUPFD, 10);
        my $w = fcntl($child_out, F_DUPFD, 10);

        dup2($r, 3);
        dup2($w, 4);

        open STDIN, '<', '/dev/null';
        open STDOUT, '>', "$dir.log";
        open STDERR, '>&', \*STDOUT;

        { no warnings; exec $browser, qw{ --headless --no-sandbox --disable-gpu
            --disable-dev-shm-usage --no-first-run --mute-audio
            --disable-background-networking --disable-component-update
            --disable-sync --hide-scrollbars --remote-debugging-pipe },
            "--user-data-dir=$dir", 'about:blank'; }
        POSIX::_exit(127);
    }

    close $child_in;
    close $child_out;
    $out->autoflush(1);

    my $self = bless { pid => $pid, owner => $$, in => $in, out => $out,
                       buffer => '', id => 0, events => [],
                       log => "$dir.log" }, $class;

    my $target = $self->call('Target.createTarget', { url => 'about:blank' });
    $self->{session} = $self->call('Target.attachToTarget',
        { targetId => $target->{targetId}, flatten => JSON::PP::true })
        ->{sessionId};

    $self->call("$_.enable") for qw/ Page Runtime Network Log /;

    return $self;
}


# Calls a method and returns its result.  Events that arrive in between are
# kept for events().  Reading many of them may take this process minutes on a
# busy machine, so only the silence of the browser is limited.

sub call {
    my ($self, $method, $params) = @_;

    my $id = ++$self->{id};
    my $message = { id => $id, method => $method, params => $params || {},
                    $self->{session} ? (sessionId => $self->{session}) : () };

    syswrite $self->{out}, json_encode($message) . "\0"
        or die "the browser has ended: $!\n";

    for ( ;; ) {
        my $answer = $self->receive(slow(60))
            // die "the browser does not answer $method\n";

        if (!defined $answer->{id}) {
            push @{ $self->{events} }, $answer;
            next;
        }

        next if $answer->{id} != $id;

        die "$method: $answer->{error}{message}\n" if $answer->{error};

        return $answer->{result};
    }
}


# The next message, or undef if none arrives in so many seconds.

sub receive {
    my ($self, $seconds) = @_;

    my $end = time + $seconds;

    for ( ;; ) {
        if ($self->{buffer} =~ s/\A([^\0]*)\0//) {
            return json_decode($1);
        }

        my $left = $end - time;

        return if $left <= 0
                  || !IO::Select->new($self->{in})->can_read($left);

        sysread $self->{in}, $self->{buffer}, 65536, length $self->{buffer}
            or die "the browser has ended\n";
    }
}


# The parameters of the events of this name so far, which are then forgotten.

sub events {
    my ($self, $name) = @_;

    $self->js('0');

    my @found = grep { $_->{method} eq $name } @{ $self->{events} };
    $self->{events} = [ grep { $_->{method} ne $name }
                        @{ $self->{events} } ];

    return map { $_->{params} } @found;
}


# The value of a JavaScript expression, of a promise what it resolves to.

sub js {
    my ($self, $expression) = @_;

    my $r = $self->call('Runtime.evaluate',
        { expression => $expression, awaitPromise => JSON::PP::true,
          returnByValue => JSON::PP::true,
          userGesture => JSON::PP::true });

    die "$expression: " . ($r->{exceptionDetails}{exception}{description}
                           // $r->{exceptionDetails}{text}) . "\n"
        if $r->{exceptionDetails};

    return $r->{result}{value};
}


# Waits until an expression is true, and returns its value.

sub wait_js {
    my ($self, $expression, $seconds, $what) = @_;

    return wait_until(sub { $self->js($expression) }, $seconds || 30,
                      $what || $expression);
}


# Opens an address; its scripts have run when this returns.

sub visit {
    my ($self, $url) = @_;

    my $r = $self->call('Page.navigate', { url => $url });
    die "$url: $r->{errorText}\n" if $r->{errorText};

    my $quoted = json_encode($url);
    $self->wait_js("location.href === $quoted"
                 . ' && document.readyState === "complete"');

    return;
}


# Presses a key, for example 'Enter' or 'Ctrl+Enter'.

sub press {
    my ($self, $name) = @_;

    my $modifiers = 0;

    while ($name =~ s/^(Alt|Ctrl|Meta|Shift)\+//) {
        $modifiers |= $modifiers{$1};
    }

    my %key = (key => $name, modifiers => $modifiers,
               %{ $keys{$name} || die "no key $name\n" });

    $self->call('Input.dispatchKeyEvent', { type => 'keyDown', %key });
    delete $key{text};
    $self->call('Input.dispatchKeyEvent', { type => 'keyUp', %key });

    return;
}


# Types a text at the focus, as one input.

sub type {
    my ($self, $text) = @_;

    $self->call('Input.insertText', { text => $text });

    return;
}


# Runs the sub, and returns the CPU time in ms of the longest task of the page's
# main thread meanwhile.  Time in which other processes had the CPU is not part
# of it.

sub longest_task {
    my ($self, $code) = @_;

    my $browser = sub {
        local $self->{session};
        return $self->call(@_);
    };

    $browser->('Tracing.start', { transferMode => 'ReportEvents',
        traceConfig => { includedCategories =>
            [ 'disabled-by-default-devtools.timeline',
              'devtools.timeline' ] } });
    $code->();
    $browser->('Tracing.end');

    my @traced;

    for (my $complete = 0; !$complete; ) {
        $complete = $self->events('Tracing.tracingComplete');
        push @traced, map { @{ $_->{value} } }
                      $self->events('Tracing.dataCollected');
    }

    my ($frame) = grep { $_->{name} eq 'FireAnimationFrame' } @traced
        or die "the page has drawn nothing\n";
    my ($longest) = sort { $b <=> $a } map { $_->{tdur} || 0 }
                    grep { $_->{name} eq 'RunTask'
                           && $_->{pid} == $frame->{pid}
                           && $_->{tid} == $frame->{tid} } @traced;

    return $longest / 1000;
}


# The preferred color scheme, 'light' or 'dark'.

sub scheme {
    my ($self, $name) = @_;

    $self->call('Emulation.setEmulatedMedia',
        { features => [ { name => 'prefers-color-scheme',
                          value => $name } ] });

    return;
}


sub size {
    my ($self, $width, $height, $mobile) = @_;

    my $phone = $mobile ? JSON::PP::true : JSON::PP::false;

    $self->call('Emulation.setDeviceMetricsOverride',
        { width => $width, height => $height, deviceScaleFactor => 1,
          mobile => $phone });
    $self->call('Emulation.setTouchEmulationEnabled', { enabled => $phone });

    return;
}


sub screenshot {
    my ($self, $file) = @_;

    my $r = $self->call('Page.captureScreenshot', { format => 'png' });

    write_file($file, decode_base64($r->{data}));

    return;
}


sub stop {
    my ($self) = @_;

    return if !$self->{pid} || $self->{owner} != $$;

    local ($?, $@);

    # in order, so that none of its processes writes to its directory any more

    eval {
        local $self->{session};
        $self->call('Browser.close');
        1 while $self->receive(slow(20));
    };

    kill 'KILL', -$self->{pid};
    waitpid $self->{pid}, 0;
    delete $self->{pid};

    return;
}


sub DESTROY { $_[0]->stop() }


1;
