# Copyright (C) The nginx-dsa authors
#
# Runs the C tests of t/unit.

use strict;
use warnings;

use lib 't/lib';
use DSA::Test;
use DSA::Unit;

my $t = DSA::Test->new('unit');

c_tests($t, 't/unit');

$t->done;
