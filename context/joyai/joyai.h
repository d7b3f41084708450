
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_JOYAI_H_INCLUDED_
#define _DSA_JOYAI_H_INCLUDED_


#include "context/completion.h"
#include "context/family.h"


/* The family of JoyAI-LLM-Flash: text completions only. */

extern const dsa_family_t  dsa_joyai;


#endif /* _DSA_JOYAI_H_INCLUDED_ */
