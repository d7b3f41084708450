
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_MARKS_H_INCLUDED_
#define _DSA_MARKS_H_INCLUDED_


/*
 * The strings of DeepSeek-V3.2's prompt format that its tokenizer knows as
 * one token (tokenizer.json, added_tokens).
 */

#define DSA_MARK_BOS         "<｜begin▁of▁sentence｜>"
#define DSA_MARK_EOS         "<｜end▁of▁sentence｜>"
#define DSA_MARK_USER        "<｜User｜>"
#define DSA_MARK_ASSISTANT   "<｜Assistant｜>"
#define DSA_MARK_THINK       "<think>"
#define DSA_MARK_THINK_END   "</think>"
#define DSA_MARK_DSML        "｜DSML｜"


#endif /* _DSA_MARKS_H_INCLUDED_ */
