package DSA::Sandbox;

# Copyright (C) The nginx-dsa authors
#
# A service unit of systemd, and what of its sandbox can be had without systemd.
# A test runs a program with the restrictions that the unit has at the moment; a
# setting that is not listed here is an error.  t/README.md describes them.

use strict;
use warnings;

use Exporter qw/ import /;
use Socket;

our @EXPORT_OK = qw/ %equivalent %without /;

# settings of which t/sandbox/run or the test makes an equivalent

our %equivalent = map { $_ => 1 } qw/
    User Group UMask RuntimeDirectory RuntimeDirectoryMode ExecStart
    LimitNOFILE LimitMEMLOCK NoNewPrivileges ProtectSystem
    ProtectHome PrivateTmp PrivateNetwork RestrictAddressFamilies
    IPAddressDeny IPAddressAllow ProtectKernelTunables ProtectControlGroups
    RestrictNamespaces RestrictSUIDSGID LockPersonality
    SystemCallArchitectures CapabilityBoundingSet Type WatchdogSec /;

# settings without one, and why

our %without = (
    (map { $_ => 'the manager alone acts on it' } qw/
        NotifyAccess TimeoutStartSec Restart RestartSec KillMode
        TimeoutStopSec RuntimeDirectoryPreserve ExecReload /),
    (map { $_ => 'it forbids what needs capabilities, and there are none' } qw/
        ProtectKernelModules ProtectClock /),
    OOMScoreAdjust => 'it forbids nothing',
    DeviceAllow => 'it needs a control group; there is no GPU either',
    SocketBindDeny => 'it needs a control group',
);

my %family = (AF_UNIX => AF_UNIX, AF_INET => AF_INET, AF_INET6 => AF_INET6);

# names of prefixes

my %prefixes = (
    any         => [ '0.0.0.0/0', '::/0' ],
    localhost   => [ '127.0.0.0/8', '::1/128' ],
    'link-local' => [ '169.254.0.0/16', 'fe80::/64' ],
    multicast   => [ '224.0.0.0/4', 'ff00::/8' ],
);


# Reads a unit.  %i in it is the name of the instance.

sub new {
    my ($class, $path, $instance) = @_;

    open my $fh, '<', $path or die "cannot read $path: $!\n";

    my ($section, %set) = ('');

    while (my $line = <$fh>) {
        chomp $line;

        next if $line =~ /^\s*(?:[#;]|$)/;

        if ($line =~ /^\[(\w+)\]$/) {
            $section = $1;
            next;
        }

        my ($name, $value) = $line =~ /^(\w+)=(.*)$/
            or die "$path: what is \"$line\"?\n";

        next if $section ne 'Service';

        $equivalent{$name} || $without{$name}
            or die "$path: DSA::Sandbox does not have $name\n";

        # an empty value resets a list

        $value =~ s/%i/$instance/g;
        $set{$name} = $value eq '' ? [] : [ @{ $set{$name} || [] }, $value ];
    }

    return bless { set => \%set }, $class;
}


# The last value of a setting, or undef; and all words of a list.

sub value { ($_[0]{set}{$_[1]} || [])->[-1] }
sub is { ($_[0]->value($_[1]) || 'no') eq $_[2] }
sub words { map { split ' ' } @{ $_[0]{set}{$_[1]} || [] } }
sub has { exists $_[0]{set}{$_[1]} }


# Whether the unit has a filter of addresses, and the IPv4 prefixes that it
# allows, as of IPAddressDeny=any and IPAddressAllow=.

sub denies { (grep { $_ eq 'any' } $_[0]->words('IPAddressDeny')) != 0 }

sub allowed {
    my ($self) = @_;

    return grep { !/:/ } map { $prefixes{$_} ? @{ $prefixes{$_} } : $_ }
           $self->words('IPAddressAllow');
}


# The arguments of build/t/seccomp.

sub filter {
    my ($self) = @_;

    return ((map { 'family=' . ($family{$_} // die "what is $_?\n") }
             $self->words('RestrictAddressFamilies')),
            $self->is('RestrictNamespaces', 'yes') ? 'namespaces' : (),
            $self->is('LockPersonality', 'yes') ? 'personality' : (),
            $self->is('RestrictSUIDSGID', 'yes') ? 'suid' : (),
            $self->is('SystemCallArchitectures', 'native') ? 'native' : ());
}


# Returns the arguments of setpriv and of prlimit.  The user of the unit exists
# only if the package is installed; if it does not, "nobody" takes its place.

sub privileges {
    my ($self) = @_;

    my $user = $self->value('User');
    my $group = $self->value('Group');
    my @user = defined $user ? getpwnam($user) : ();
    my @group = defined $group ? getgrnam($group) : ();

    @user = getpwnam('nobody') if defined $user && !@user;

    return (@user ? "--reuid=$user[2]" : (),
            @group ? "--regid=$group[2]" : @user ? "--regid=$user[3]" : (),
            '--clear-groups', '--inh-caps=-all',
            $self->is('NoNewPrivileges', 'yes') ? '--no-new-privs' : (),
            $self->has('CapabilityBoundingSet')
            && !$self->words('CapabilityBoundingSet')
            ? '--bounding-set=-all' : ());
}


sub limits {
    my ($self) = @_;

    return map {
        my $value = $self->value("Limit\U$_");
        defined $value ? "--$_=" . ($value eq 'infinity' ? 'unlimited' : $value)
                       : ();
    } qw/ nofile memlock /;
}


1;
