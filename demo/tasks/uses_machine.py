# Copyright (C) The nginx-dsa authors

"""More commands of a shell: services and processes, parts of files, the
network, programs that are installed."""

from tasks.uses_shell import shell_kinds


MACHINE = shell_kinds(r'''
= find out whether {process} runs
$ systemctl is-active {process}
< {state}
- Is [the service |]{process} [active|up|alive]?
- What is the state of the service {process}?
- Check the status of {process}.
- {process} status?
- is {process} still up
- The page does not load. Is the {process} service active?
- Please ask systemctl whether {process} is active.
- Has {process} failed? Check the service.
- Look whether the {process} service is running.
- Did somebody stop {process}? See what systemd says.
- I restarted the machine. Did {process} come up?
- systemctl is-active {process}
- How is the service {process} doing?
- Tell me if {process} is active or failed.
- users complain, pls check if {process} is alive
- The service {process}: in which state is it?
- I'd like to know whether the service {process} is active.
- Could you see if {process} is up on the server?
- My monitoring shows nothing for {process}. Active or not?
- {process}, alive?
- Would you please see how {process} is? I mean the service.
- In which condition is {process}.service?
- Someone touched the server, and I only care about {process}. Is it active?
- Service check: {process}
- does systemd think {process} is ok
> [The service|] {process} is {state}.
> It is {state}.
> {state}.
> According to systemctl, it is {state}.
> [Status|State] of {process}: {state}
> [The state is|It says] {state}.
> [Right now|Currently], {process} is {state}.
> I checked {process}: {state}.
+ {state}

= restart {process}
$ systemctl restart {process}
- Restart {process}.
- [Please|Can you] restart the service {process}?
- {process} hangs. Restart it.
- systemctl restart {process}
- {process} needs a restart.
- I changed the settings of {process}, so it has to be restarted.
- bounce {process} pls
- Give {process} a restart.
- Stop {process} and start it again.
- Could you bring {process} down and up again?
- After the update, {process} must be restarted. Please do it.
- The service {process} acts strangely; a restart should help.
- kick {process}, it's stuck again
- Would you restart {process} on the server for me?
- I want you to restart one service: {process}
- Use systemctl to restart {process}.
- Let {process} start anew.
- New certificate is in place. Restart {process} now.
- Turn {process} off and on again.
- {process} must read its new configuration, so restart it.
- The memory of {process} grows; a restart, please.
- could u restart {process} rn
- Service: {process}. Action: restart.
- I'd be glad if you restarted {process}.
- Have {process} restarted, users are waiting.
> {process} [was|has been|is] restarted.
> [Done|OK|Restarted]: {process}.
> I [have |]restarted {process}.
> [The service|] {process} runs again.
> {process} is back.
> [All right|Sure], {process} has been restarted.
> The restart of {process} [is done|worked].
> [Restarted|I restarted] the service {process}.
+ {process}

= end the process {pid}
$ kill {pid}
- Kill [the process|process|pid] {pid}.
- End process {pid}.
- [Please|Can you] kill {pid}?
- kill {pid}
- Process {pid} hangs. Stop it.
- The program with the number {pid} does not answer any more, kill it.
- Terminate the process with the PID {pid}.
- {pid} is eating all my CPU. Kill that process.
- Would you end the process number {pid} for me?
- pid {pid} must die
- Send a signal to {pid} so that it ends.
- Somebody left process {pid} running. Stop it, please.
- I need to get rid of the process {pid}.
- Stop PID {pid}.
- There's a runaway process. Its PID is {pid}. Please kill it.
- Use kill on {pid}.
- The number is {pid}. Please stop that process.
- Process {pid} isn't needed any more.
- kill -- it's {pid}
- I started something by mistake, PID {pid}. Make it stop.
- top shows {pid} at 100 %. End it.
- Could you terminate {pid}?
- Get process {pid} off the machine.
> [The process|Process] {pid} [is gone|has ended|was killed].
> [Done|OK|Killed]: {pid}.
> I [have |]ended [the process |]{pid}.
> {pid} was [killed|stopped].
> [All right|Sure], {pid} is stopped.
> [Stopped|Ended] process {pid}.
> PID {pid} has been terminated.
> I killed {pid}.
+ {pid}

= find the folder that we are in
$ pwd
< {place}
- In which [folder|directory] are we?
- What is the [current|working] directory?
- Where am I? The directory, I mean.
- pwd
- whats the cwd
- Print the working directory.
- Which path are we in?
- I have lost track. In which directory does the shell stand?
- Tell me the current folder.
- Relative paths do not work. Where are we in the file system?
- [Please|Can you] print the directory that we are in.
- Show me the path of the folder that I'm working in.
- My current path?
- Find out in which directory you are running.
- Before I delete anything, tell me the folder we are in.
- Under which path does this shell work?
- Run pwd.
- which dir am i in
- I need the full path of the place where we are.
- Are we in the right folder? Name it.
- Current folder, please.
- Directory of this shell?
- Where will a file go if I save it here? The directory, I mean.
> [We are|You are|I am] in {place}.
> {place}
> [It is|The directory is] {place}.
> [The current|The working] directory is {place}.
> [Current directory|Directory]: {place}
> The shell is in {place}.
> According to pwd: {place}.
> The path is {place}.
+ {place}

= find the files that end with .{end} in {folder}
$ find {folder} -name "*.{end}"
< {found}
- Find all .{end} files in {folder}.
- Which [files|files of {folder}] end with .{end}? Search {folder}.
- Search {folder} for *.{end}.
- Where in {folder} are .{end} files?
- [Please|Can you] find every {end} file under {folder}.
- any .{end} files below {folder}?
- I'm looking for {end} files. They must be somewhere in {folder}.
- Use find to look for *.{end} in {folder}.
- Give me the paths of the .{end} files in {folder}.
- Is there a file with the ending .{end} in {folder}? Which?
- {folder}: list files matching *.{end}, please
- Look through {folder} and its subfolders for {end} files.
- I remember only that it ended with .{end} and was below {folder}. Find it.
- I want to convert all {end} files in {folder}. Which are there?
- find files, folder {folder}, pattern *.{end}
- pls search {end} files in directory {folder}
- Which *.{end} exist somewhere below {folder}?
- {folder} should have a .{end} file. Where exactly?
- Look for the pattern *.{end}, starting in {folder}.
- I lost a file. Ending .{end}, somewhere under {folder}.
- Do a find in {folder} for names like *.{end}.
- Every {end} file beneath {folder}, please.
- File search: {folder}, .{end}
> [There is|I found|It is|The file is] {found}.
> {found}
> [Found|The search found]: {found}
> One file[ ends with .{end}|]: {found}
> [I found|find returns] only {found}.
> There is one, {found}.
> [The only one is|It found] {found}.
> In {folder} there is {found}.
+ {found}

= show line {few} of {path}
$ sed -n {few}p {path}
< {line}
- What is on line {few} of {path}?
- Show [me |]line {few} of {path}.
- Print line {few} from {path}.
- {path}, line {few}?
- I get an error on line {few} of {path}. What does that line say?
- Line number {few} in the file {path}, please.
- Use sed to print line {few} of {path}.
- [Please|Can you] read me line {few} in {path}.
- whats in line {few} of {path}
- The compiler complains about {path}, line {few}. Show me that line.
- I want to see only line {few}. The file is {path}.
- Look up line {few} of "{path}".
- Go to line {few} in {path} and tell me what you read.
- What does {path} say in line {few}?
- The entry I need is on line {few} of {path}. Get it for me.
- give me {path} line {few}
- I want line {few}, file {path}.
- {path}:{few} - what's written there?
- Somebody refers to line {few} in {path}. Read it to me.
- Cut out line {few} of {path}, please.
- Nothing but line {few} of {path}.
- The parser stops at line {few} of {path}. What's there?
> [It is|The line is|It says|Line {few} is]: {line}
> {line}
> "{line}"[ is line {few}|].
> Line {few} [reads|says] "{line}".
> [On line {few}|There] it says "{line}".
> Line {few} of {path}: {line}
> [Here it is|Here you go]: {line}
> That line says "{line}".
+ {line}

= find the line of {path} with {word}
$ grep -n {word} {path}
< {few}:the {word} is here
- On which line of {path} is "{word}"?
- Find [the line with |]"{word}" in {path} and give me the line number.
- Which line of {path} mentions {word}?
- {word} in {path}: line number?
- grep -n {word} {path}
- At what line does {path} mention {word}?
- Where in {path} do I find "{word}"? I need the number of the line.
- Search {path} for {word}. On which line is it?
- In {path} there is the word {word}. Which line number?
- [Please|Can you] look in {path} and find the number of the line that contains {word}.
- line no of "{word}" in {path} pls
- I want to jump to {word} in {path}. Which line?
- Use grep to find the line number of {word} in {path}.
- Somewhere in {path} it says {word}. In which line?
- Tell me where {word} stands in {path} (line number).
- The text "{word}" must be in {path}. At which line?
- Does {path} have "{word}" somewhere? On which line?
- number of the line with {word}, file {path}
- Look through {path}, where is the word {word}? Line number, please.
- I have to edit the line with "{word}" in {path}; which one is it?
- Please grep for {word} in {path} with line numbers.
- {path} mentions {word} once. In what line?
> [It is|"{word}" is] on line {few}.
> Line {few}.
> [On|In] line {few}[ of {path}|].
> {path} has it on line {few}.
> [I found it|It stands] on line {few}.
> [grep finds|I see] "{word}" on line {few}.
> [The line number is|The number is] {few}.
> "{word}": line {few}
+ {few}

= count the files in {folder}
$ ls {folder} | wc -l
< {n}
- How many files are in {folder}?
- Count the files in {folder}.
- Number of files in {folder}?
- how many files in {folder}
- ls {folder} | wc -l
- {folder}: how many entries?
- How many things did I put into {folder}?
- I wonder how many files are in {folder} by now.
- [Please|Can you] count what is in {folder}.
- Are there many files in {folder}? How many?
- Tell me the number of entries in the directory {folder}.
- The upload should have put some files into {folder}. How many are there?
- I'd like to know how many files the folder {folder} has.
- For my report: number of files in directory {folder}.
- count files of folder {folder}, just the number
- Would you count the files? Folder {folder}.
- Is {folder} crowded? I want the number of files.
- {folder} - number of files?
- Someone said that {folder} has too many files. Count.
- Use ls and wc to count what {folder} has.
- How large is the number of files under {folder}, without subfolders?
- Give me a count for {folder}.
> {n}[ files|].
> [There are|It has|I count] {n} files.
> {folder} has {n}[ files| entries|].
> In {folder} there are {n} files.
> [The number is|That makes] {n}.
> {folder}: {n} files
> I counted {n}.
> [In all|Altogether], {n} files.
+ {n}

= make {script} executable
$ chmod +x {script}
- Make {script} executable.
- chmod +x {script}
- [Please|Can you] make {script} executable?
- I cannot run {script}. Give it the right to be executed.
- {script} should be executable.
- Permission denied when I start {script}, so set the executable bit.
- Add the executable flag to {script}.
- Allow that {script} is executed.
- {script}: set +x
- I wrote a script, {script}. Make it executable, please.
- Set the x bit of {script}.
- I want to start {script} as a program. Change its mode.
- pls make script {script} executable
- Use chmod so that {script} can be run.
- The file {script} must become executable.
- Would you do a chmod +x on {script}?
- {script} has no x bit. Add it.
- The shell refuses to run {script}. Fix its permissions so that it can be executed.
- chmod {script}, executable
- Turn {script} into something I can run.
- Permissions: {script} should be executable.
- I'd like to call ./{script}; allow it.
> {script} is executable[ now|].
> [Done|OK]: {script} can be [run|executed].
> I made {script} executable.
> [You can|You may] run {script} now.
> [The bit is set|I set the bit]: {script}.
> {script} can be executed now.
> {script} has the executable flag.
> [All right|Sure], {script} is executable.
+ {script}

= create the empty file {path}
$ touch {path}
- Create an empty file[ called|,] {path}.
- touch {path}
- Make an empty {path}.
- [Please|Can you] create {path}? It may be empty.
- I need an empty file named {path}.
- {path} must exist, even if it is empty. Create it.
- New empty file: {path}
- The program fails without {path}. Make one with nothing in it.
- Use touch to make {path}.
- Let there be a file {path}, empty.
- pls make me a blank file {path}
- Start a new file {path} with no content.
- An empty file {path}, please.
- Would you touch {path} for me?
- Put an empty file at {path}.
- I'd like you to create the file {path} without any text in it.
- Make sure that there's a file {path}; it needs no content.
- {path}, empty, new.
- Our tool looks for {path}, even an empty one will do. Create it.
- Put nothing into a new file {path}.
- Could you make a blank file at {path}?
- A new file please, {path}, zero bytes.
> {path} [is there|exists|was created].
> [Done|OK|Created]: {path}.
> I [made|created] {path}.
> There is [now|] an empty {path}.
> The [empty |]file {path} exists now.
> [All right|Sure], {path} is there.
> {path} has been created.
> You have an empty {path} now.
+ {path}

= pack {folder} into {archive}
$ tar -czf {archive} {folder}
- Pack {folder} into {archive}.
- Make an archive {archive} of {folder}.
- tar {folder} as {archive}
- [Please|Can you] put {folder} into an archive called {archive}?
- Archive {folder}. The name is {archive}.
- I want to send {folder} to somebody; pack it as {archive}.
- Compress the folder {folder} to {archive}.
- Back up the directory {folder} in {archive}.
- {archive} should have all of {folder}. Use tar.
- Create {archive} from {folder}.
- tarball of {folder} pls, name: {archive}
- Save {folder} as a compressed archive, {archive}.
- Bundle up {folder} in a file {archive}.
- I need {folder} as one file, namely {archive}.
- Use tar to pack the directory {folder}. Output: {archive}
- Would you make {archive} with everything in {folder}?
- From the folder {folder} I want an archive, {archive}.
- {archive} <- {folder}, with tar and gzip
- Before we delete {folder}, pack it as {archive}.
- Take {folder}, compress it, and call the result {archive}.
- I have to hand in {folder} as {archive}. Please make it.
- Would tar put {folder} in {archive}? Do that.
> {folder} is packed into {archive}.
> [Done|OK|Packed]: {archive}.
> I [made|created] {archive}.
> The archive is {archive}.
> {archive} [has|contains] {folder} now.
> [The archive|] {archive} is ready.
> [All right|Sure], {archive} is there.
> You find {folder} in {archive}.
+ {archive}

= unpack {archive}
$ tar -xzf {archive}
- Unpack {archive}.
- Extract {archive}.
- [Please|Can you] unpack {archive}?
- untar {archive}
- I downloaded {archive}. Extract it, please.
- What came by mail is {archive}; unpack it here.
- Open the archive {archive} and take everything out.
- I need the files inside {archive}. Extract them.
- Decompress {archive} with tar.
- {archive} must be unpacked.
- extract this pls: {archive}
- Use tar to extract {archive} into the current folder.
- Would you unpack the archive "{archive}" for me?
- Get the contents out of {archive}.
- The backup is in {archive}. Unpack it.
- Unzip the tarball {archive}
- {archive} came from a customer. Extract it.
- I need what's in {archive}, so unpack it, please.
- Undo the packing of {archive}.
- tar -x for {archive}
- Expand the archive {archive}.
- Let me have the files of {archive}.
> {archive} is [unpacked|extracted].
> [Done|OK|Unpacked]: {archive}.
> I [unpacked|extracted] {archive}.
> The files of {archive} are there.
> {archive} has been [extracted|unpacked].
> [All right|Sure], {archive} is unpacked.
> Everything in {archive} [is|was] extracted.
> I took the files out of {archive}.
+ {archive}

= find the number of processors
$ nproc
< {cores}
- How many [cores|CPUs|processors] does [this machine|the server] have?
- Number of cores?
- nproc
- How many processors do we have here?
- Count the CPU cores.
- how many cpus has this box
- I want to build with as many jobs as there are cores. How many is that?
- [Please|Can you] find out how many cores I have.
- Tell me the number of CPUs.
- What does nproc say?
- Is it a large machine? How many cores?
- For the license I need the number of cores.
- The CPU count, please.
- How many things can this computer do in parallel? I mean its cores.
- Do we have enough cores? Give me the number.
- core count of the server pls
- Tell me about the CPU: how many cores?
- Is one core all we have? How many are there?
- cores?
- My video takes ages. How many processors does this box have?
- We plan the load and need the number of CPUs here.
- Run nproc and tell me what it says.
> {cores}[ cores|].
> [It has|There are|You have] {cores} [cores|CPUs].
> [This machine|The server] has {cores}[ cores|].
> The number of cores is {cores}.
> According to nproc: {cores}.
> Cores: {cores}
> [In all|Altogether], {cores} cores.
> There are {cores}.
+ {cores}

= find out the time of the machine
$ date +%H:%M
< {clock}
- What time is it on the server?
- What does the clock of this machine say?
- Look up the time on the [server|machine].
- Which time does the computer think it is?
- server time?
- Is the clock of the server right? What does it show?
- [Please|Can you] run date and give me hours and minutes.
- The times in my log are odd. What time does the machine have?
- Tell me the system time.
- At what time are we according to the server?
- system clock pls
- I need the current time of this host.
- The cron job did not start. What is the time on the box?
- hours and minutes on the server clock?
- Compare my watch with the server: what time has it?
- Read the system clock for me.
- date on the server, only hours and minutes
- Is the server an hour behind? Tell me its time.
- My clock stopped. Which time does this computer have?
- Now, on the machine, it is ...?
- Time according to the host?
- We log in local time. What time is it there, on the server?
> It is {clock}[ on the server| there|].
> {clock}[.|]
> The [clock|machine|server] says {clock}.
> [The system time|The time] is {clock}.
> System time: {clock}
> [Right now|At the moment] it is {clock}.
> The clock shows {clock}.
> According to date: {clock}.
+ {clock}

= find the address of the machine
$ hostname -I
< {address}
- What is the IP [address |]of this machine?
- Which IP address [do I have|does the server have|are we on]?
- ip address?
- whats my ip on this box
- Give me the IP of the host.
- I want to connect to this machine. What is its address?
- [Please|Can you] find the IP address of the server.
- Under which address can the machine be reached?
- My colleague asks for the IP of this server.
- Run hostname -I.
- Tell me the network address of this computer.
- For the firewall I need the IP of this host.
- Did the machine get a new address? Which one is it?
- Look up the IP here.
- The server's IP, please.
- Find out the address of this box pls
- With which IP are we in the network?
- Not the name, I need the IP of this machine.
- Address of this server in numbers?
- ssh needs an IP. Give me the one of this box.
- The IP please, of the machine you are on.
- I can't reach the server by name. What's its IP?
> [It is|The address is|The IP is] {address}.
> {address}
> [This machine|The server] has [the address |]{address}.
> [Its|The] IP address is {address}.
> IP: {address}
> You can reach it at {address}.
> [We are|You are] on {address}.
> The machine's address is {address}.
+ {address}

= install {package}
$ pip install {package}
< Successfully installed {package}-{version}
- Install {package}[ with pip|].
- pip install {package}
- I need the Python package {package}.
- [Please|Can you] install {package} for Python?
- Python says "no module named {package}". Install it.
- My script imports {package}, which is missing. Add it with pip.
- Get me {package} with pip.
- {package} is not installed. Please change that with pip.
- Set up {package} for me, it is a Python package.
- pip: {package}
- I'd like to use {package} in Python, so install it.
- pls pip install {package}
- Add the package {package} to our Python.
- Would you run pip to get {package}?
- We need {package} for the tests. Install it with pip, please.
- Download and install {package} (pip).
- We lack {package}. pip should get it.
- import {package} fails. Please install what is missing with pip.
- Make {package} available in Python.
- {package}, via pip, please.
- Could pip fetch {package} for us?
- My notebook wants {package}. Install that package.
> {package} [{version} |]is installed.
> [Done|OK|Installed]: {package}.
> I installed {package}[ {version}|].
> [You have|There is] {package} {version} now.
> {package} has been installed.
> [All right|Sure], {package} is installed.
> pip installed {package}[, version {version}|].
> You can import {package} now.
+ {package}

= find the version of {package}
$ pip show {package}
< Name: {package}\nVersion: {version}\nSummary: a package
- Which version of {package} [is installed|do I have|do we use]?
- What version of the Python package {package} is installed?
- {package} version?
- pip show {package}
- Is my {package} up to date? Tell me its version.
- whats the version of {package} here
- Ask pip for the version of {package}.
- [Please|Can you] look up which {package} we have.
- I am writing the requirements and need the version of {package}.
- How new is the installed {package}? The version, please.
- Find out the version of {package} with pip.
- Our bug report needs the version of {package}.
- Check with pip which release of {package} is there.
- The installed version of {package} pls
- Do we have a recent {package}? Which version?
- Look what version {package} has on this machine.
- Is {package} recent here? The number, please.
- {package}: installed version?
- The docs are for another version of {package}, I think. Which have we got?
- Somebody updated {package}. To which version?
- I'd like to know the version number of the package {package}.
- Which {package} does pip show?
> {package} {version}[.|]
> [It is|You have|The version is] {version}.
> {version}[.|]
> [Installed is|There is] {package} {version}.
> {package}: {version}
> The [installed version|version of {package}] is {version}.
> According to pip, it is {version}.
> We have version {version}.
+ {version}

= find the owner of {path}
$ stat -c %U {path}
< {user}
- Who owns {path}?
- Which user [owns|has] the file {path}?
- Owner of {path}?
- To whom does {path} belong?
- stat {path}: who is the owner?
- I cannot write to {path}. Whose file is it?
- [Please|Can you] find out the owner of {path}.
- whos the owner of {path}
- Does {path} belong to me? Tell me the user.
- Look up which account owns {path}.
- Somebody created {path}. Which user does it belong to?
- {path} belongs to which user?
- The owner of the file "{path}", please.
- I have to ask the owner of {path} for access. Who is it?
- Tell me the user name of the owner, file {path}.
- Whose is {path}?
- {path}: owner?
- Under whose name is {path} stored?
- The file {path} has an owner. Name the user.
- Which account does {path} belong to, please?
- I may not open {path}. Who may? I mean its owner.
- Who put {path} there? The owner of the file, please.
> {user}[ owns it|].
> [It is|The owner is] {user}.
> {path} belongs to {user}.
> [The owner of {path}|Its owner] is {user}.
> {user} owns {path}.
> Owner: {user}
> It belongs to {user}.
> The file belongs to [the user |]{user}.
+ {user}
''')
