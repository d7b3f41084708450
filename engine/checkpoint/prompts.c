
/*
 * Copyright (C) The nginx-dsa authors
 */


#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "base/file.h"
#include "engine/checkpoint/prompts.h"


#define DSA_PROMPTS_TEMPLATE  (1024 * 1024)     /* bytes of a template */
#define DSA_PROMPTS_LIST      128


/*
 * The versions of families that have some, by the SHA-256 of the templates.
 * Models of DeepSeek have their templates in other files, so that their version
 * has to be named.
 */

typedef struct {
    const char  *family;
    const char  *name;
    const char  *sha256;        /* or NULL */
} dsa_prompts_version_t;


static const dsa_prompts_version_t  dsa_prompts_versions[] = {
    { "deepseek-v3", "deepseek-v3", NULL },
    { "deepseek-v3", "deepseek-v3.1", NULL },
    { "glm-4.7", "glm-4.7-flash",
      "d63ad536c3c81880043e22ec7fd08db42b4d8fb7c89c7138bc562bfa25281375" },
    { "glm", "glm-5",
      "49335f8fecdfd431a15da212777a20714cf35b091843aff9bf885b59e706650f" },
    { "glm", "glm-5.1",
      "b1abe19bf8f414a79131a69238f0e87582ba070dd46253ee55b12c71d13cf808" },
    { "glm", "glm-5.2",
      "172dc74a35e1752df75ecfb2b2cf9326d2852bb1379868ebeec9571654489679" },
    { "glm", "glm-5.3",
      "3740abcea51c45830cb3ca562084ad5fb2ef53589376f73332e9886f93ade41c" }
};

#define DSA_PROMPTS_VERSIONS  (sizeof(dsa_prompts_versions)                   \
                               / sizeof(dsa_prompts_versions[0]))


static void dsa_prompts_list(const char *family, char text[DSA_PROMPTS_LIST]);
static int dsa_prompts_named(dsa_prompt_family_t *prompt, const char *named,
    dsa_err_t *err);
static int dsa_prompts_digest(const char *path, char hex[65], dsa_err_t *err);


int
dsa_prompts_resolve(dsa_prompt_family_t *prompt, const char *dir,
    const char *named, dsa_err_t *err)
{
    char    path[PATH_MAX], hex[65], list[DSA_PROMPTS_LIST];
    size_t  i;

    if (named != NULL) {
        return dsa_prompts_named(prompt, named, err);
    }

    dsa_prompts_list(prompt->name, list);

    if (list[0] == '\0') {
        return DSA_OK;
    }

    if (dsa_file_path(path, dir, dsa_strz("chat_template.jinja"), err)
        != DSA_OK)
    {
        return DSA_ERROR;
    }

    if (dsa_prompts_digest(path, hex, err) != DSA_OK) {
        return DSA_ERROR;
    }

    for (i = 0; i < DSA_PROMPTS_VERSIONS && hex[0] != '\0'; i++) {
        if (strcmp(dsa_prompts_versions[i].family, prompt->name) == 0
            && dsa_prompts_versions[i].sha256 != NULL
            && strcmp(dsa_prompts_versions[i].sha256, hex) == 0)
        {
            prompt->name = dsa_prompts_versions[i].name;
            return DSA_OK;
        }
    }

    return dsa_error(err, "%s %s%s, so the format of the prompts is not known; "
                     "expected \"prompt_format\" with %s", path,
                     hex[0] == '\0' ? "does not exist"
                                    : "is not a published template: its "
                                      "SHA-256 is ", hex, list);
}


/* The versions of a family as "a, b or c"; empty if it has none. */

static void
dsa_prompts_list(const char *family, char text[DSA_PROMPTS_LIST])
{
    size_t  i, n, more;

    text[0] = '\0';
    more = 0;

    for (i = 0; i < DSA_PROMPTS_VERSIONS; i++) {
        more += strcmp(dsa_prompts_versions[i].family, family) == 0;
    }

    for (i = 0, n = 0; i < DSA_PROMPTS_VERSIONS; i++) {
        if (strcmp(dsa_prompts_versions[i].family, family) == 0) {
            n += (size_t) snprintf(text + n, DSA_PROMPTS_LIST - n, "%s%s",
                                   n == 0 ? "" : more == 1 ? " or " : ", ",
                                   dsa_prompts_versions[i].name);
            more--;
        }
    }
}


static int
dsa_prompts_named(dsa_prompt_family_t *prompt, const char *named,
    dsa_err_t *err)
{
    char    list[DSA_PROMPTS_LIST];
    size_t  i;

    for (i = 0; i < DSA_PROMPTS_VERSIONS; i++) {
        if (strcmp(dsa_prompts_versions[i].family, prompt->name) == 0
            && strcmp(dsa_prompts_versions[i].name, named) == 0)
        {
            prompt->name = dsa_prompts_versions[i].name;
            return DSA_OK;
        }
    }

    dsa_prompts_list(prompt->name, list);

    if (list[0] == '\0' && strcmp(named, prompt->name) == 0) {
        return DSA_OK;
    }

    return dsa_error(err, "\"prompt_format\" is \"%s\"; expected %s for this "
                     "model", named, list[0] != '\0' ? list : prompt->name);
}


/* The SHA-256 of a file in hexadecimal; empty if there is no file. */

static int
dsa_prompts_digest(const char *path, char hex[65], dsa_err_t *err)
{
    int            rc;
    dsa_buf_t      text;
    unsigned int   i, len;
    unsigned char  digest[EVP_MAX_MD_SIZE];

    hex[0] = '\0';

    if (access(path, F_OK) == -1 && errno == ENOENT) {
        return DSA_OK;
    }

    memset(&text, 0, sizeof(dsa_buf_t));

    rc = dsa_file_read(path, DSA_PROMPTS_TEMPLATE, &text, err);

    if (rc == DSA_OK
        && EVP_Digest(text.data, text.len, digest, &len, EVP_sha256(), NULL)
           != 1)
    {
        rc = dsa_error(err, "%s: the SHA-256 cannot be computed", path);
    }

    dsa_buf_free(&text);

    for (i = 0; rc == DSA_OK && i < 32; i++) {
        (void) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    }

    return rc;
}
