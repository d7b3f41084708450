
# ./configure of nginx sources this file: it adds to nginx's Makefile how the
# page of dsa_console is made, and that only one object depends on it.  The
# page is made again when a file of console/ changes.

dsa=$ngx_addon_dir
dsa_page=$NGX_OBJS/ngx_http_dsa_console_page.h

cat << END                                                    >> $NGX_MAKEFILE

$NGX_OBJS/addon/observe/ngx_http_dsa_console.o: $dsa_page

$dsa_page: $(echo $dsa/console/embed $dsa/console/*.html $dsa/console/*.css \
                  $dsa/console/*.js) ; \
    perl $dsa/console/embed > $dsa_page.tmp && mv $dsa_page.tmp $dsa_page

END
