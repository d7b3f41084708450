
/*
 * Copyright (C) The nginx-dsa authors
 */


#include "engine/schedule/pace.h"


#define DSA_PACE_ROOM       0.25        /* least time of prompts, of that of
                                           answers */
#define DSA_PACE_SPREAD     2.0         /* times the mean error */
#define DSA_PACE_MOST       0.25        /* of the expected time */


double
dsa_pace_limit(const dsa_pace_t *p, double base, double error)
{
    double  limit, margin, least;

    margin = DSA_PACE_SPREAD * error;
    margin = margin < DSA_PACE_MOST ? margin : DSA_PACE_MOST;

    limit = p->token / (1 + margin);
    least = base * (1 + DSA_PACE_ROOM);

    return limit > least ? limit : least;
}


double
dsa_pace_late(const dsa_pace_t *p, const dsa_pace_late_t *l, double share)
{
    double  late;

    late = l->late - (p->earned - l->earned) * share;

    return late > 0 ? late : 0;
}


int
dsa_pace_may_wait(const dsa_pace_t *p, const dsa_pace_late_t *l, double share,
    uint32_t answers)
{
    double  all, own;

    all = dsa_pace_late(p, &p->all, 1);
    own = dsa_pace_late(p, l, share);

    return (all == 0 || all + answers <= DSA_PACE_LATE)
           && (own == 0 || own + answers <= DSA_PACE_LATE * share);
}


void
dsa_pace_waits(dsa_pace_t *p, dsa_pace_late_t *l, double share,
    uint32_t answers)
{
    p->all.late = dsa_pace_late(p, &p->all, 1) + answers;
    p->all.earned = p->earned;
    l->late = dsa_pace_late(p, l, share) + answers;
    l->earned = p->earned;
}


void
dsa_pace_answers(dsa_pace_t *p, uint32_t answers)
{
    p->earned += (double) answers / DSA_PACE_EARN;
}
