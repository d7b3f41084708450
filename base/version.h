
/*
 * Copyright (C) The nginx-dsa authors
 */


#ifndef _DSA_VERSION_H_INCLUDED_
#define _DSA_VERSION_H_INCLUDED_


/* The version of everything here; debian/changelog has the same one. */

#define DSA_VERSION  "0.1"


#endif /* _DSA_VERSION_H_INCLUDED_ */
