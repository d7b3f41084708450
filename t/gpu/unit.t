# Copyright (C) The nginx-dsa authors
#
# The C tests of t/gpu: every CUDA op beside its CPU twin.

use strict;
use warnings;

use lib 't/lib';
use DSA::GPU;
use DSA::Test;
use DSA::Unit;

need_gpu();

my $t = DSA::Test->new('gpu unit');

c_tests($t, 't/gpu');

$t->done;
