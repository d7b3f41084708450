
/*
 * Copyright (C) The nginx-dsa authors
 *
 * The formats of JSON Schema as patterns.  Each permits only valid values, and
 * may leave out rare valid ones.
 */


#include "grammar/schema.h"


#define DSA_DATE                                                              \
    "(?:\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])"                \
    "|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))"         \
    "|(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])"                             \
    "|(?:[02468][048]|[13579][26])00)-02-29)"

#define DSA_TIME                                                              \
    "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,9})?"                    \
    "(?:Z|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)"

/*
 * A label has at most 40 characters, so that six labels and their dots stay
 * below 253.  Characters 3 and 4 are not both hyphens: RFC 5891, 4.2.3.1
 * reserves such labels for Punycode, which not every such label is.
 */

#define DSA_ALNUM       "[a-zA-Z0-9]"
#define DSA_ALNUMH      "[a-zA-Z0-9-]"
#define DSA_LABEL                                                             \
    DSA_ALNUM "(?:" DSA_ALNUMH "{0,2}" DSA_ALNUM                              \
    "|" DSA_ALNUMH "(?:" DSA_ALNUM DSA_ALNUMH "|-" DSA_ALNUM ")"              \
    DSA_ALNUMH "{0,35}" DSA_ALNUM ")?"

#define DSA_OCTET       "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
#define DSA_IPV4        DSA_OCTET "(?:\\." DSA_OCTET "){3}"
#define DSA_HEX         "[0-9a-fA-F]{1,4}"
/* a character of an authority, and of a path, a query or a fragment */

#define DSA_URI_CHAR    "[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2}"
#define DSA_URI_PATH    DSA_URI_CHAR "|[:@]"

#define DSA_ATOM        "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,20}"

#define DSA_DURATION_TIME                                                     \
    "T(?:\\d{1,9}H(?:\\d{1,9}M(?:\\d{1,9}S)?)?"                               \
    "|\\d{1,9}M(?:\\d{1,9}S)?|\\d{1,9}S)"


typedef struct {
    const char  *name;
    const char  *pattern;
} dsa_format_t;


static const dsa_format_t  dsa_formats[] = {

    /* RFC 3339; the leap second is left out */

    { "date", "^" DSA_DATE "$" },
    { "time", "^" DSA_TIME "$" },
    { "date-time", "^" DSA_DATE "T" DSA_TIME "$" },
    { "duration",
      "^P(?:(?:\\d{1,9}Y(?:\\d{1,9}M(?:\\d{1,9}D)?)?"
      "|\\d{1,9}M(?:\\d{1,9}D)?|\\d{1,9}D)(?:" DSA_DURATION_TIME ")?"
      "|" DSA_DURATION_TIME "|\\d{1,9}W)$" },

    { "email",
      "^" DSA_ATOM "(?:\\." DSA_ATOM "){0,2}@" DSA_LABEL
      "(?:\\." DSA_LABEL "){1,3}$" },
    { "hostname", "^" DSA_LABEL "(?:\\." DSA_LABEL "){0,5}$" },
    { "ipv4", "^" DSA_IPV4 "$" },

    { "ipv6",
      "^(?:(?:" DSA_HEX ":){7}" DSA_HEX
      "|(?:" DSA_HEX ":){6}" DSA_IPV4
      "|::(?:" DSA_HEX ":){0,5}(?:" DSA_HEX "|" DSA_IPV4 ")|::"
      "|" DSA_HEX "::(?:" DSA_HEX ":){0,4}(?:" DSA_HEX "|" DSA_IPV4 ")"
      "|(?:" DSA_HEX ":" DSA_HEX ")::(?:" DSA_HEX ":){0,3}(?:" DSA_HEX "|"
      DSA_IPV4 ")"
      "|(?:" DSA_HEX ":){1,2}" DSA_HEX "::(?:" DSA_HEX ":){0,2}(?:" DSA_HEX
      "|" DSA_IPV4 ")"
      "|(?:" DSA_HEX ":){1,3}" DSA_HEX "::(?:" DSA_HEX ":){0,1}(?:" DSA_HEX
      "|" DSA_IPV4 ")"
      "|(?:" DSA_HEX ":){1,5}" DSA_HEX "::" DSA_HEX
      "|(?:" DSA_HEX ":){0,6}" DSA_HEX "::)$" },

    /* RFC 3986, with an authority or a path, without addresses in brackets */

    { "uri",
      "^[a-zA-Z][a-zA-Z0-9+.-]*:"
      "(?://(?:(?:" DSA_URI_CHAR "|:)*@)?"
      "(?:" DSA_URI_CHAR ")*(?::\\d{0,5})?"
      "(?:/(?:" DSA_URI_PATH ")*)*"
      "|/?(?:" DSA_URI_PATH ")+(?:/(?:" DSA_URI_PATH ")*)*|/)"
      "(?:\\?(?:" DSA_URI_PATH "|[/?])*)?(?:#(?:" DSA_URI_PATH "|[/?])*)?$" },

    { "uuid",
      "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-"
      "[0-9a-fA-F]{12}$" },

    { NULL, NULL }
};


const char *
dsa_format_pattern(dsa_str_t format)
{
    const dsa_format_t  *f;

    for (f = dsa_formats; f->name != NULL; f++) {
        if (dsa_str_eqz(format, f->name)) {
            return f->pattern;
        }
    }

    return NULL;
}
