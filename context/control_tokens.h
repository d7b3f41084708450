
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_CONTROL_TOKENS_H_INCLUDED_
#define _DSA_CONTROL_TOKENS_H_INCLUDED_


/*
 * The strings of DeepSeek-V3.2's prompt format that its tokenizer knows as
 * one token (tokenizer.json, added_tokens).
 */

#define DSA_CONTROL_BOS         "<｜begin▁of▁sentence｜>"
#define DSA_CONTROL_EOS         "<｜end▁of▁sentence｜>"
#define DSA_CONTROL_USER        "<｜User｜>"
#define DSA_CONTROL_ASSISTANT   "<｜Assistant｜>"
#define DSA_CONTROL_THINK       "<think>"
#define DSA_CONTROL_THINK_END   "</think>"
#define DSA_CONTROL_DSML        "｜DSML｜"


#endif /* _DSA_CONTROL_TOKENS_H_INCLUDED_ */
